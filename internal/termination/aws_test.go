package termination

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// imds is an instance metadata service of version 2, whose tokens are numbered.
type imds struct {
	issued int
	// valid is the last token that is valid, ttl what it is said to be valid for.
	valid int
	ttl   string
	// announced is the time of the end.
	announced string
}

func (i *imds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "PUT " + awsToken:
		if seconds, err := strconv.Atoi(r.Header.Get(awsTTLHeader)); err != nil || seconds < 1 || seconds > 21600 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		i.issued++
		i.valid = i.issued
		w.Header().Set(awsTTLHeader, i.ttl)
		fmt.Fprintf(w, "token-%d", i.issued)
	case "GET " + awsTime:
		if r.Header.Get(awsTokenHeader) != fmt.Sprintf("token-%d", i.valid) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		i.value(w)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (i *imds) value(w http.ResponseWriter) {
	if i.announced == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	fmt.Fprint(w, i.announced)
}

const (
	put = "PUT " + awsToken
	get = "GET " + awsTime
)

func TestAWS(t *testing.T) {
	clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	there := &imds{ttl: "21600"}
	at := serve(t, there.ServeHTTP)
	of := source(t, AWS, SourceOptions{URL: at.URL, Clock: clock})
	requests := func(want string) {
		t.Helper()
		if got := at.seen(); got != want {
			t.Errorf("the requests are %s, want %s", got, want)
		}
		at.now(there.ServeHTTP)
	}

	expect(t, of, false, "")
	requests(put + ", " + get)
	clock.Step(6*time.Hour - awsEarly - time.Second)
	expect(t, of, false, "")
	requests(get) // the token is used as long as it is valid
	clock.Step(2 * time.Second)
	expect(t, of, false, "")
	requests(put + ", " + get) // and replaced before its end

	there.valid = -1 // as after a restart of the service
	expect(t, of, false, "")
	requests(get + ", " + put + ", " + get)

	there.ttl = "60"
	there.valid = -1
	expect(t, of, false, "")
	at.now(there.ServeHTTP)
	clock.Step(31 * time.Second)
	expect(t, of, false, "")
	requests(put + ", " + get) // a shorter life than requested is respected

	there.announced = "2026-01-01T09:30:00Z"
	expect(t, of, true, "")
	there.announced = "none"
	expect(t, of, false, unexpected)
}

// A service that gives no tokens is used as version 1, until it requires them.
func TestAWSWithoutTokens(t *testing.T) {
	for name, token := range map[string]http.HandlerFunc{
		"forbidden": says(http.StatusForbidden, ""), "not found": says(http.StatusNotFound, ""), "not allowed": says(http.StatusMethodNotAllowed, ""),
		"lost on the way": hangs,
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			there := &imds{ttl: "21600"}
			first := func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPut:
					token(w, r)
				case r.Header.Get(awsTokenHeader) != "":
					w.WriteHeader(http.StatusBadRequest)
				default:
					there.value(w)
				}
			}
			at := serve(t, first)
			of := source(t, AWS, SourceOptions{URL: at.URL, Clock: clock})
			expect(t, of, false, "")
			expect(t, of, false, "")
			if got := at.seen(); got != put+", "+get+", "+get {
				t.Errorf("the requests are %s", got)
			}
			clock.Step(awsPlain)
			at.now(first)
			expect(t, of, false, "")
			if got := at.seen(); got != put+", "+get {
				t.Errorf("the requests are %s; want a token to be requested again", got)
			}
			at.now(there.ServeHTTP) // which gives 401 without a token
			expect(t, of, false, "")
			if got := at.seen(); got != get+", "+put+", "+get {
				t.Errorf("the requests are %s; want a token to be requested at once", got)
			}
			at.now(first)
			there.announced = "2026-01-01T09:30:00Z"
			of.(*aws).plain()
			expect(t, of, true, "")
		})
	}
}

func TestAWSTokensThatAreNone(t *testing.T) {
	for body, want := range map[string]kind{"": unexpected, "two words": unexpected, "line\r\nbreak: x": unexpected} {
		of := source(t, AWS, SourceOptions{URL: serve(t, says(http.StatusOK, body)).URL})
		expect(t, of, false, want)
	}
	for status, want := range map[int]kind{http.StatusBadRequest: "Status400", http.StatusInternalServerError: "Status500", http.StatusFound: "Status302"} {
		at := serve(t, says(status, ""))
		expect(t, source(t, AWS, SourceOptions{URL: at.URL}), false, want)
		if got := at.seen(); got != put {
			t.Errorf("status %d: the requests are %s; want nothing without a token", status, got)
		}
	}
	// One that is refused although it is new is an error, not a loop.
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			fmt.Fprint(w, "token")
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	expect(t, source(t, AWS, SourceOptions{URL: at.URL}), false, "Status401")
	if got := at.seen(); got != put+", "+get+", "+put+", "+get {
		t.Errorf("the requests are %s", got)
	}
}
