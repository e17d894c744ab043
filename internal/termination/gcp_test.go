package termination

import (
	"fmt"
	"net/http"
	"testing"
)

func TestGCP(t *testing.T) {
	value := "FALSE"
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != gcpPreempted || r.Header.Get("Metadata-Flavor") != "Google" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		fmt.Fprint(w, value)
	})
	of := source(t, GCP, SourceOptions{URL: at.URL})
	expect(t, of, false, "")
	value = "TRUE"
	expect(t, of, true, "")
	value = "TRUE\n"
	expect(t, of, true, "")
	value = "NONE"
	expect(t, of, false, unexpected)
}

// Something else at the address, such as a captive portal, is not taken for Google's.
func TestGCPIsGoogle(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "TRUE") })
	expect(t, source(t, GCP, SourceOptions{URL: at.URL}), false, unexpected)
}
