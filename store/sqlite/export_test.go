package sqlite

// Syncs is how many groups were committed.
func (b *Backend) Syncs() int {
	<-b.turn
	defer b.leave()
	return b.syncs
}

// Limit bounds the database's size in pages, as a full disk does.
func (b *Backend) Limit(pages string) error {
	<-b.turn
	defer b.leave()
	return b.run("PRAGMA max_page_count = " + pages)
}

// FoldOften has the WAL folded after each commit, and the writer fold the rest whenever it can.
func (b *Backend) FoldOften() {
	<-b.turn
	defer b.leave()
	b.folder.most, b.folder.long = 3, 0
}

// Remembered is how many events the writer has at hand.
func (b *Backend) Remembered() int {
	<-b.turn
	defer b.leave()
	return len(b.recent.young.events) + len(b.recent.old.events)
}
