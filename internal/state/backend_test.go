package state_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

// engine talks to an endpoint like the http backend of Terraform and OpenTofu.
type engine struct {
	endpoint backend.Endpoint
}

// request is an HTTP request; empty fields default to an engine's values.
type request struct {
	method, address, username, password, id, md5 string
	body                                         []byte
}

func (e engine) send(ctx context.Context, r request) (status int, body string) {
	GinkgoHelper()
	or := func(value, fallback string) string {
		if value == "" {
			return fallback
		}
		return value
	}
	address := or(r.address, e.endpoint.Address)
	if r.id != "" {
		address += "?ID=" + r.id
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	Expect(err).NotTo(HaveOccurred())
	sent.SetBasicAuth(or(r.username, e.endpoint.Username), or(r.password, e.endpoint.Password))
	if len(r.body) > 0 {
		sum := md5.Sum(r.body)
		sent.Header.Set("Content-MD5", or(r.md5, base64.StdEncoding.EncodeToString(sum[:])))
	}
	response, err := http.DefaultClient.Do(sent)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(content)
}

func (e engine) status(ctx context.Context, r request) int {
	GinkgoHelper()
	status, _ := e.send(ctx, r)
	return status
}

func lockInfo(id string) []byte {
	return fmt.Appendf(nil, `{"ID":%q,"Operation":"OperationTypeApply","Who":"me"}`, id)
}

var _ = Describe("The backend", func() {
	var (
		server  *backend.Server
		store   *state.Store
		session *state.Session
		it      engine
		key     state.Key
	)

	BeforeEach(func(ctx SpecContext) {
		server = backend.New(backend.Options{MaxBody: 64 << 10})
		Expect(server.Start(ctx)).To(Succeed())
		DeferCleanup(server.Close)
		store, key = state.New(live, state.Options{}), newKey()
		session = acquire(ctx, store, key, run("r1"))
		endpoint, err := server.Open(session)
		Expect(err).NotTo(HaveOccurred())
		it = engine{endpoint}
	})

	It("serves an engine's whole conversation", func(ctx SpecContext) {
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200), "a response may get lost")
		Expect(it.status(ctx, request{method: "GET"})).To(Equal(204))
		first := body(1, 100, "this")
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: first})).To(Equal(200))
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: first})).To(Equal(200), "a response may get lost")
		status, got := it.send(ctx, request{method: "GET"})
		Expect(status).To(Equal(200))
		Expect(got).To(Equal(string(first)))
		Expect(it.status(ctx, request{method: "UNLOCK", body: lockInfo("l1")})).To(Equal(200))
		Expect(it.status(ctx, request{method: "UNLOCK", body: lockInfo("l1")})).To(Equal(200),
			"a response may get lost")
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l2")})).To(Equal(200))
		Expect(store.Get(ctx, key)).To(HaveField("Raw", first))
		Expect(session.Release(ctx, nil)).To(Succeed())
	})

	It("listens on loopback only, and shows no password", func() {
		host, _, err := net.SplitHostPort(strings.TrimPrefix(strings.SplitAfterN(it.endpoint.Address, "/", 4)[2], "/"))
		Expect(err).NotTo(HaveOccurred())
		Expect(net.ParseIP(strings.TrimSuffix(host, "/")).IsLoopback()).To(BeTrue())
		Expect(it.endpoint.Password).To(HaveLen(64))
		encoded, err := json.Marshal(it.endpoint)
		Expect(err).NotTo(HaveOccurred())
		for _, text := range []string{fmt.Sprint(it.endpoint), fmt.Sprintf("%+v", it.endpoint),
			fmt.Sprintf("%#v", it.endpoint), string(encoded)} {
			Expect(text).NotTo(ContainSubstring(it.endpoint.Password))
		}
	})

	It("refuses what is wrong and changes nothing", func(ctx SpecContext) {
		other := newKey()
		theirs, err := server.Open(acquire(ctx, store, other, run("r1")))
		Expect(err).NotTo(HaveOccurred())
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: body(5, 100)})).To(Equal(200))
		Expect(engine{theirs}.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		good := body(6, 100)
		cases := map[string]struct {
			request request
			want    int
		}{
			"a wrong password": {request{method: "POST", id: "l1", body: good, password: "wrong"}, 401},
			"another Machine's password": {request{method: "POST", id: "l1", body: good, password: theirs.Password},
				401},
			"an unknown user":          {request{method: "POST", id: "l1", body: good, username: "nobody"}, 401},
			"a wrong password to read": {request{method: "GET", password: "wrong"}, 401},
			"another Machine's address": {request{method: "POST", id: "l1", body: good, address: theirs.Address},
				403},
			"another Machine's address to read": {request{method: "GET", address: theirs.Address}, 403},
			"another Machine's address to lock": {request{method: "LOCK", body: lockInfo("l9"),
				address: theirs.Address},
				403},
			"an address that is none":         {request{method: "GET", address: it.endpoint.Address + "x"}, 404},
			"no lock id":                      {request{method: "POST", body: good}, 423},
			"a stale lock id":                 {request{method: "POST", id: "l0", body: good}, 423},
			"a lock that another process has": {request{method: "LOCK", body: lockInfo("l2")}, 423},
			"an unlock with a foreign id":     {request{method: "UNLOCK", body: lockInfo("l2")}, 423},
			"a lock without an id":            {request{method: "LOCK", body: []byte(`{}`)}, 400},
			"an unlock that is no JSON":       {request{method: "UNLOCK", body: []byte(`l1`)}, 400},
			"a lock of too many bytes":        {request{method: "LOCK", body: bytes.Repeat([]byte(" "), 65<<10)}, 413},
			"a corrupt body":                  {request{method: "POST", id: "l1", body: good[:len(good)-1]}, 400},
			"an empty body":                   {request{method: "POST", id: "l1"}, 400},
			"a body that is not its MD5": {request{method: "POST", id: "l1", body: good,
				md5: base64.StdEncoding.EncodeToString(make([]byte, 16))}, 400},
			"an MD5 that is none":                 {request{method: "POST", id: "l1", body: good, md5: "%"}, 400},
			"a body of too many bytes":            {request{method: "POST", id: "l1", body: body(6, 64<<10)}, 413},
			"an older serial":                     {request{method: "POST", id: "l1", body: body(4, 100)}, 409},
			"other content under the same serial": {request{method: "POST", id: "l1", body: body(5, 100)}, 409},
			"another lineage": {request{method: "POST", id: "l1",
				body: []byte(`{"version":4,"serial":9,"lineage":"x"}`)}, 409},
			"a delete":                             {request{method: "DELETE"}, 405},
			"a method that is none of the engines": {request{method: "PUT", id: "l1", body: good}, 405},
		}
		mine, their := head(ctx, key).ResourceVersion, head(ctx, other).ResourceVersion
		for name, tc := range cases {
			Expect(it.status(ctx, tc.request)).To(Equal(tc.want), name)
			Expect(head(ctx, key).ResourceVersion).To(Equal(mine), name)
			Expect(head(ctx, other).ResourceVersion).To(Equal(their), name)
		}
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: good})).To(Equal(200),
			"the engine's lock is still held")
	})

	It("bounds a body whose size is not announced", func(ctx SpecContext) {
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		before := head(ctx, key).ResourceVersion
		sent, err := http.NewRequestWithContext(ctx, "POST", it.endpoint.Address+"?ID=l1",
			io.LimitReader(endless{}, 1<<20))
		Expect(err).NotTo(HaveOccurred())
		sent.SetBasicAuth(it.endpoint.Username, it.endpoint.Password)
		response, err := http.DefaultClient.Do(sent)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(413))
		Expect(head(ctx, key).ResourceVersion).To(Equal(before))
	})

	It("returns to a second process who has the lock", func(ctx SpecContext) {
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: body(1, 100)})).To(Equal(409), "no lock is held")
		Expect(it.status(ctx, request{method: "UNLOCK", body: lockInfo("l1")})).To(Equal(409), "no lock is held")
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		status, holder := it.send(ctx, request{method: "LOCK", body: lockInfo("l2")})
		Expect(status).To(Equal(423))
		Expect(holder).To(MatchJSON(lockInfo("l1")))
		Expect(it.status(ctx, request{method: "UNLOCK", body: lockInfo("l1")})).To(Equal(200))
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: body(1, 100)})).To(Equal(409),
			"the lock was let go")
	})

	It("opens one state once, and nothing after it is shut", func(ctx SpecContext) {
		_, err := server.Open(session)
		Expect(err).To(MatchError(ContainSubstring("open already")))
		it.endpoint.Close()
		it.endpoint.Close()
		Expect(it.status(ctx, request{method: "GET"})).To(Equal(401))
		again, err := server.Open(session)
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Password).NotTo(Equal(it.endpoint.Password))
		Expect(it.status(ctx, request{method: "GET"})).To(Equal(401), "an old password stays shut out")
		it.endpoint.Close()
		Expect(engine{again}.status(ctx, request{method: "GET"})).To(Equal(204),
			"closing an old endpoint leaves the new one")
	})

	It("responds to the session's end with a status that engines do not retry", func(ctx SpecContext) {
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		_, err := store.Acquire(ctx, key, state.AcquireOptions{Lock: run("r2"), Break: ptr.To(run("r1"))})
		Expect(err).NotTo(HaveOccurred())
		before := head(ctx, key).ResourceVersion
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: body(1, 100)})).To(Equal(409))
		Expect(it.status(ctx, request{method: "GET"})).To(Equal(409))
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(409))
		Expect(head(ctx, key).ResourceVersion).To(Equal(before))

		closed := acquire(ctx, store, newKey(), run("r1"))
		endpoint, err := server.Open(closed)
		Expect(err).NotTo(HaveOccurred())
		Expect(closed.Release(ctx, nil)).To(Succeed())
		Expect(engine{endpoint}.status(ctx, request{method: "GET"})).To(Equal(410))
	})

	It("asks the engine to try again while the API server is away", func(ctx SpecContext) {
		hasty := backend.New(backend.Options{SaveTimeout: 300 * time.Millisecond})
		Expect(hasty.Start(ctx)).To(Succeed())
		DeferCleanup(hasty.Close)
		api := &faults{}
		endpoint, err := hasty.Open(acquire(ctx, state.New(api.client(), state.Options{}), newKey(), run("r1")))
		Expect(err).NotTo(HaveOccurred())
		it := engine{endpoint}
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		api.set(func(f *faults) { f.away = true })
		saved := body(1, 100)
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: saved})).To(Equal(503))
		api.set(func(f *faults) { f.away = false })
		Expect(it.status(ctx, request{method: "POST", id: "l1", body: saved})).To(Equal(200))
	})

	It("saves a state that has arrived though the engine hangs up", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		endpoint, err := server.Open(acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1")))
		Expect(err).NotTo(HaveOccurred())
		it := engine{endpoint}
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		hangUp, cancel := context.WithCancel(ctx)
		api.set(func(f *faults) { f.before = func() { cancel(); time.Sleep(100 * time.Millisecond) } })
		saved := body(1, 100)
		sent, err := http.NewRequestWithContext(hangUp, "POST", endpoint.Address+"?ID=l1", bytes.NewReader(saved))
		Expect(err).NotTo(HaveOccurred())
		sent.SetBasicAuth(endpoint.Username, endpoint.Password)
		_, err = http.DefaultClient.Do(sent)
		Expect(err).To(MatchError(context.Canceled))
		Eventually(func() ([]byte, error) {
			seen, err := store.Get(ctx, key)
			if err != nil {
				return nil, err
			}
			return seen.Raw, nil
		}).Should(Equal(saved))
	})

	It("waits for requests under way when it closes, no longer than it may", func(ctx SpecContext) {
		api, key := &faults{}, newKey()
		endpoint, err := server.Open(acquire(ctx, state.New(api.client(), state.Options{}), key, run("r1")))
		Expect(err).NotTo(HaveOccurred())
		it := engine{endpoint}
		Expect(it.status(ctx, request{method: "LOCK", body: lockInfo("l1")})).To(Equal(200))
		began := make(chan struct{})
		api.set(func(f *faults) { f.before = func() { close(began); time.Sleep(200 * time.Millisecond) } })
		saved, status := body(1, 100), make(chan int, 1)
		go func() {
			defer GinkgoRecover()
			status <- it.status(ctx, request{method: "POST", id: "l1", body: saved})
		}()
		<-began
		Expect(server.Close(ctx)).To(Succeed())
		Eventually(status).Should(Receive(Equal(200)))
		Expect(store.Get(ctx, key)).To(HaveField("Raw", saved))
		_, err = server.Open(session)
		Expect(err).To(MatchError(ContainSubstring("not serving")))
		Expect(server.Close(ctx)).To(Succeed())

		stuck := backend.New(backend.Options{})
		Expect(stuck.Start(ctx)).To(Succeed())
		endpoint, err = stuck.Open(session)
		Expect(err).NotTo(HaveOccurred())
		connection, err := net.Dial("tcp", strings.Split(endpoint.Address, "/")[2])
		Expect(err).NotTo(HaveOccurred())
		defer connection.Close()
		_, err = fmt.Fprint(connection, "GET / HTTP/1.1\r\n")
		Expect(err).NotTo(HaveOccurred())
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		started := time.Now()
		_ = stuck.Close(short)
		Expect(time.Since(started)).To(BeNumerically("<", 2*time.Second))
	})

	It("is started once", func(ctx SpecContext) {
		Expect(server.Start(ctx)).To(MatchError(ContainSubstring("started before")))
		_, err := backend.New(backend.Options{}).Open(session)
		Expect(err).To(MatchError(ContainSubstring("not serving")))
	})
})

// endless is an endless body of spaces.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
