package receiver_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous/client/receiver"
	"github.com/rendezvous-events/rendezvous/standardwebhooks"
)

// A receiver of webhooks: only what is signed with its key, and no older than five minutes, reaches the handler.
func ExampleVerifier_Handler() {
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // of the registration; from the environment, not from the source
	verifier, err := receiver.New([]string{key})
	if err != nil {
		fmt.Println(err)
		return
	}
	hook := verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		message, _ := receiver.FromContext(r.Context())
		fmt.Printf("%s: %s\n", message.ID, message.Body)
		w.WriteHeader(http.StatusNoContent)
	}))

	// What the plane sends.
	signer, err := standardwebhooks.ParseSigningKey(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	body := `{"type":"rendezvous.run.completed"}`
	message := standardwebhooks.NewMessage("order-4711/3/0", time.Now(), []byte(body))
	request := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(body))
	request.Header.Set("webhook-id", message.ID)
	request.Header.Set("webhook-timestamp", message.Timestamp)
	request.Header.Set("webhook-signature", signer.Sign(message))
	answer := httptest.NewRecorder()
	hook.ServeHTTP(answer, request)
	fmt.Println(answer.Code)

	// What somebody else sends.
	forged := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(`{"type":"rendezvous.run.failed"}`))
	forged.Header = request.Header
	answer = httptest.NewRecorder()
	hook.ServeHTTP(answer, forged)
	fmt.Println(answer.Code)

	// Output:
	// order-4711/3/0: {"type":"rendezvous.run.completed"}
	// 204
	// 401
}
