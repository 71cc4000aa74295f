package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/rendezvous-events/rendezvous/clock"
)

const (
	maxSection       = 32 << 10 // bytes of a header section
	maxInformational = 5        // 1xx answers before the final one
)

// section is a header section that was read.
type section struct {
	status int
	minor  int // of HTTP/1.x
	header textproto.MIMEHeader
}

// readFinal reads header sections until one is final. 101 is: what was asked for never leaves HTTP/1.1.
func readFinal(r *bufio.Reader) (section, *Error) {
	for range maxInformational + 1 {
		raw, fault := readSection(r)
		if fault != nil {
			return section{}, fault
		}
		s, err := parseSection(raw)
		if err != nil {
			return section{}, silent(CodeMalformed, err.Error(), err)
		}
		if s.status < 100 || s.status >= 200 || s.status == 101 {
			return s, nil
		}
	}
	return section{}, silent(CodeMalformed, "more than 5 informational answers", nil)
}

// readSection reads up to and with the empty line.
func readSection(r *bufio.Reader) ([]byte, *Error) {
	var raw []byte
	line := 0 // where the line that is read begins
	for {
		part, err := r.ReadSlice('\n')
		raw = append(raw, part...)
		switch {
		case len(raw) > maxSection:
			return nil, silent(CodeHeaderTooLarge, "the header section is larger than 32 KiB", nil)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, disconnected(err)
		}
		if line > 0 && len(bytes.TrimRight(raw[line:], "\r\n")) == 0 {
			return raw, nil
		}
		line = len(raw)
	}
}

var (
	errStatusLine = errors.New("the answer does not begin with an HTTP/1 status line")
	errHeader     = errors.New("a line of the header section is no header")
)

func parseSection(raw []byte) (section, error) {
	reader := textproto.NewReader(bufio.NewReader(bytes.NewReader(raw)))
	line, err := reader.ReadLine()
	if err != nil {
		return section{}, errStatusLine
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	minor, isHTTP := strings.CutPrefix(version, "HTTP/1.")
	if !isHTTP || len(minor) != 1 || minor[0] < '0' || minor[0] > '9' || len(code) != 3 || strings.Trim(code, "0123456789") != "" {
		return section{}, errStatusLine
	}
	s := section{minor: int(minor[0] - '0')}
	s.status, _ = strconv.Atoi(code) // three digits
	if s.header, err = reader.ReadMIMEHeader(); err != nil {
		return section{}, errHeader
	}
	return s, nil
}

// keepsAlive reports whether the receiver leaves the connection open behind the body.
func (s section) keepsAlive() bool {
	for _, value := range s.header.Values("Connection") {
		for token := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "close") {
				return false
			}
		}
	}
	return s.minor > 0 && s.status != 101
}

// framing is how the end of an answer's body is found.
type framing int

const (
	unframed    framing = iota // it cannot be, and none of it is read
	empty                      // there is none
	length                     // by Content-Length
	chunked                    // by its chunks
	untilClosed                // it ends with the connection
)

func (s section) framing() (framing, int64) {
	if s.status == 101 || s.status == 204 || s.status == 304 {
		return empty, 0
	}
	if codings := s.header.Values("Transfer-Encoding"); len(codings) > 0 {
		if len(codings) == 1 && strings.EqualFold(codings[0], "chunked") {
			return chunked, 0
		}
		return untilClosed, 0
	}
	lengths := s.header.Values("Content-Length")
	if len(lengths) == 0 {
		return untilClosed, 0
	}
	n, err := strconv.ParseUint(lengths[0], 10, 63)
	for _, other := range lengths {
		if err != nil || other != lengths[0] {
			return unframed, 0
		}
	}
	return length, int64(n)
}

// readBody reads what is asked for of the body, and reports whether it ended so that another answer could follow. The status stands, whatever comes of it.
func (c *Client) readBody(ctx context.Context, conn *conn, s section, r Request, a *Attempt) bool {
	how, n := s.framing()
	if how == unframed || how == empty {
		a.Complete = how == empty
		return a.Complete
	}
	ctx, cancel := clock.WithTimeout(ctx, c.clock, r.BodyTime)
	defer cancel()
	released := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(past) })
	most := int64(r.MaxBody)
	var err error
	switch how {
	case length:
		a.Body, err = io.ReadAll(io.LimitReader(conn.reader, min(n, most)))
		a.Complete = err == nil && int64(len(a.Body)) == n
	case chunked:
		a.Body, err = io.ReadAll(io.LimitReader(httputil.NewChunkedReader(conn.reader), most))
		a.Complete = err == nil && int64(len(a.Body)) < most && skipTrailer(conn.reader)
	case untilClosed:
		a.Body, err = io.ReadAll(io.LimitReader(conn.reader, most))
		a.Complete = err == nil && int64(len(a.Body)) < most
	}
	return released() && a.Complete && how != untilClosed
}

// maxTrailer is how many lines may stand behind the last chunk.
const maxTrailer = 16

// skipTrailer reads up to and with the empty line that ends a chunked body.
func skipTrailer(r *bufio.Reader) bool {
	for range maxTrailer {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return false
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return true
		}
	}
	return false
}
