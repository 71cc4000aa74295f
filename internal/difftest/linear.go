package difftest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rendezvous-events/rendezvous"
)

// Ask makes one call of a client and answers what came.
type Ask func(s Step) (any, error)

// Overlap lets clients call one store at once and answers what each saw, and when: an order of moments, by which one call is over before another begins.
func Overlap(s *side, clients ...func(ask Ask)) []porcupine.Operation {
	var moments atomic.Int64
	histories := make([][]porcupine.Operation, len(clients))
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i, client := range clients {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			client(func(step Step) (any, error) {
				begun := moments.Add(1)
				value, err := step.ask(s)
				histories[i] = append(histories[i], porcupine.Operation{
					ClientId: i, Input: step, Call: begun, Output: answer{value, err}, Return: moments.Add(1),
				})
				return value, err
			})
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
	return slices.Concat(histories...)
}

// Law is what one call after the other comes to: whether it may be answered so in a state, and the state behind it, which it does not share with the one
// before.
type Law[S any] func(state S, call Step, got any, err error) (allowed bool, next S)

// patience is how long an order is looked for.
const patience = time.Minute

// Check looks for an order of the calls, each at some moment between its beginning and its end, in which the law allows every answer. "" is that there is
// one. A call that was not done, since the store was not to be had, changes nothing.
func Check[S any](begin S, law Law[S], history []porcupine.Operation) string {
	model := porcupine.Model{
		Init: func() any { return begin },
		Step: func(state, input, output any) (bool, any) {
			got := output.(answer)
			if rendezvous.CodeOf(got.err) == rendezvous.CodeUnavailable {
				return true, state
			}
			allowed, next := law(state.(S), input.(Step), got.value, got.err)
			return allowed, next
		},
		Equal: func(a, b any) bool { return reflect.DeepEqual(a, b) },
	}
	switch porcupine.CheckOperationsTimeout(model, history, patience) {
	case porcupine.Ok:
		return ""
	case porcupine.Unknown:
		return "no order was found in time"
	}
	return "there is no order in which these calls have these answers:\n" + told(history)
}

// told is a history by the beginning of its calls.
func told(history []porcupine.Operation) string {
	sorted := slices.Clone(history)
	slices.SortFunc(sorted, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var b strings.Builder
	for _, o := range sorted {
		got := o.Output.(answer)
		fmt.Fprintf(&b, "\t%3d..%3d client %d: %s\n\t\t", o.Call, o.Return, o.ClientId, Go(o.Input.(Step)))
		if got.err != nil {
			fmt.Fprintln(&b, got.err)
			continue
		}
		brief(&b, reflect.ValueOf(got.value), 3)
		b.WriteString("\n")
	}
	return b.String()
}

// brief writes what is filled in of an answer, without what would only make it long.
func brief(b *strings.Builder, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		brief(b, v.Elem(), depth)
	case reflect.Slice:
		b.WriteString("[")
		for i := range min(v.Len(), 8) {
			brief(b, v.Index(i), depth-1)
			b.WriteString(" ")
		}
		b.WriteString("]")
	case reflect.Struct:
		b.WriteString("{")
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if v.Field(i).IsZero() || depth == 0 || slices.Contains(lengthy, name) {
				continue
			}
			b.WriteString(" " + name + ":")
			brief(b, v.Field(i), depth-1)
		}
		b.WriteString("}")
	default:
		fmt.Fprint(b, v)
	}
}

var lengthy = []string{"Notices", "ReceivedAt", "RegisteredAt", "Remaining", "ExpiresAt", "Payload", "Tenant", "Type", "Keys", "Records", "EventTrace", "WaitTrace", "Queue"}
