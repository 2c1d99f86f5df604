package demo

import (
	"encoding/binary"
	"io"
	"math"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
)

// Many statuses are set or asked for with one request, to fill servers and to look
// all keys through. The witness is not told of these.

// A question is about one status: set it, or ask for it if the number is 0.
type question struct {
	key    leasehold.Key
	number uint64
	text   string
}

// A reply is what a server has after that. The sum is that of the text.
type reply struct {
	number, sum uint64
}

// declined is the number in a reply of a server that does not own the key.
const declined = math.MaxUint64

// Bounds on what is asked with one request.
const (
	maxQuestions = 1024
	maxText      = 2000
	questionHead = 18 // key, number, and the size of the text
	replySize    = 16
	maxBatchSize = maxQuestions * (questionHead + maxText)
)

func sumOf(text string) uint64 { return xxhash.Sum64String(text) }

func encodeQuestions(all []question) []byte {
	var out []byte
	for i := range all {
		q := &all[i]
		out = binary.LittleEndian.AppendUint64(out, uint64(q.key))
		out = binary.LittleEndian.AppendUint64(out, q.number)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(q.text)))
		out = append(out, q.text...)
	}
	return out
}

func decodeQuestions(body []byte) ([]question, error) {
	var all []question
	for len(body) > 0 {
		if len(body) < questionHead || len(all) == maxQuestions {
			return nil, badBatch(len(all))
		}
		q := question{key: leasehold.Key(binary.LittleEndian.Uint64(body)), number: binary.LittleEndian.Uint64(body[8:])}
		size := int(binary.LittleEndian.Uint16(body[16:]))
		if body = body[questionHead:]; size > len(body) || size > maxText {
			return nil, badBatch(len(all))
		}
		q.text, body = string(body[:size]), body[size:]
		all = append(all, q)
	}
	return all, nil
}

func badBatch(at int) error {
	return leasehold.Errorf("presence", leasehold.Invalid, "", "question %d is cut off or too long, or more than %d were asked", at, maxQuestions)
}

func encodeReplies(all []reply) []byte {
	out := make([]byte, 0, len(all)*replySize)
	for _, r := range all {
		out = binary.LittleEndian.AppendUint64(out, r.number)
		out = binary.LittleEndian.AppendUint64(out, r.sum)
	}
	return out
}

func decodeReplies(body []byte, want int) ([]reply, error) {
	if len(body) != want*replySize {
		return nil, leasehold.Errorf("ask", leasehold.Unavailable, "", "%d bytes came for %d questions", len(body), want)
	}
	all := make([]reply, want)
	for i := range all {
		at := body[i*replySize:]
		all[i] = reply{binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])}
	}
	return all, nil
}

// answerMany serves a batch of questions.
func (p *presence) answerMany(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBatchSize))
	var all []question
	if err == nil {
		all, err = decodeQuestions(body)
	}
	if err != nil {
		respond(w, http.StatusBadRequest, statusDocument{Error: err.Error()})
		return
	}
	replies := make([]reply, len(all))
	for i := range all {
		if replies[i], err = p.replyTo(&all[i]); err != nil {
			respond(w, codeOf(err), statusDocument{Error: err.Error()})
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(encodeReplies(replies)) // a caller that has gone needs no answer
}

func (p *presence) replyTo(q *question) (reply, error) {
	do := getting
	if q.number != 0 {
		do = setting(q.number, q.text)
	}
	s, _, err := p.carryOut(q.key, do, untimed)
	switch kind := leasehold.KindOf(err); {
	case kind == leasehold.NotOwner || kind == leasehold.Suspended:
		return reply{number: declined}, nil
	case err != nil:
		return reply{}, err
	}
	return reply{s.number, sumOf(s.text)}, nil
}
