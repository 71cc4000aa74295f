package timer

// Idle reports whether the worker has nothing to do at this instant of its clock.
func (w *Worker) Idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.shards {
		if a.inFlight || a.look && a.epoch != 0 {
			return false
		}
	}
	return len(w.wake) == 0 && len(w.adopted) == 0 && w.sending == 0
}
