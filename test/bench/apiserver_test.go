//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

const (
	apiPath      = "/apis/machine.openshift.io/v1beta1/namespaces/" + lab.Namespace
	machinesPath = apiPath + "/machines"
)

// writes counts requests that the API server was asked to write something by, by "VERB resource".
type writes map[string]float64

// sample takes a line of the API server's metrics apart.
var sample = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)

// label takes one label of a sample.
var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// apiServer is asked by this process itself: starting kubectl costs more than what is measured.
type apiServer struct {
	rest rest.Interface
}

func newAPIServer(t *testing.T, l *lab.Lab) *apiServer {
	t.Helper()
	config, err := l.Cluster.AdminConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &apiServer{rest: clientset.Discovery().RESTClient()}
}

// get reads what is at a path, as JSON, into an object.
func (s *apiServer) get(ctx context.Context, path string, into any) error {
	raw, err := s.rest.Get().RequestURI(path).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("getting %s: %w", path, err)
	}
	return json.Unmarshal(raw, into)
}

// patch merges a patch into what is at a path.
func (s *apiServer) patch(ctx context.Context, path, patch string) error {
	if err := s.rest.Patch(types.MergePatchType).RequestURI(path).Body([]byte(patch)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("patching %s: %w", path, err)
	}
	return nil
}

// writes returns the writes of Machines and MachineSets, and of events, since the API server started. Scaling is left out: the
// benchmark does that itself.
func (s *apiServer) writes(ctx context.Context) (writes, error) {
	text, err := s.rest.Get().RequestURI("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	out := writes{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		found := sample.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(found[1], -1) {
			labels[pair[1]] = pair[2]
		}
		written := slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, labels["verb"])
		ours := slices.Contains([]string{"machines", "machinesets", "events"}, labels["resource"])
		if !written || !ours || labels["subresource"] == "scale" {
			continue
		}
		count, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return nil, fmt.Errorf("reading the API server's metrics: %w", err)
		}
		what := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			what += "/" + labels["subresource"]
		}
		out[what] += count
	}
	return out, lines.Err()
}

// since returns what was written after earlier.
func (w writes) since(earlier writes) writes {
	out := writes{}
	for what, count := range w {
		if more := count - earlier[what]; more > 0 {
			out[what] = more
		}
	}
	return out
}

func (w writes) sum() float64 {
	var sum float64
	for _, count := range w {
		sum += count
	}
	return sum
}

// String lists the writes, the most frequent first.
func (w writes) String() string {
	parts := make([]string, 0, len(w))
	for what := range w {
		parts = append(parts, what)
	}
	slices.SortFunc(parts, func(x, y string) int {
		if w[x] != w[y] {
			return int(w[y] - w[x])
		}
		return strings.Compare(x, y)
	})
	for i, what := range parts {
		parts[i] = fmt.Sprintf("%.0f `%s`", w[what], what)
	}
	return strings.Join(parts, ", ")
}

// settled waits until nothing has been written for two seconds, and returns all that ever was.
func (s *apiServer) settled(t *testing.T) writes {
	t.Helper()
	var last writes
	var since time.Time
	until(t, 250*time.Millisecond, "nothing is written any more", func(ctx context.Context) (bool, error) {
		now, err := s.writes(ctx)
		if err != nil {
			return false, err
		}
		if last == nil || now.sum() != last.sum() {
			last, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second, nil
	})
	return last
}

// machines asks for one Machine and how many more there are, which costs the API server little.
func (s *apiServer) machines(ctx context.Context) (int, error) {
	var list struct {
		Metadata struct {
			RemainingItemCount int `json:"remainingItemCount"`
		} `json:"metadata"`
		Items []json.RawMessage `json:"items"`
	}
	err := s.get(ctx, machinesPath+"?limit=1", &list)
	return len(list.Items) + list.Metadata.RemainingItemCount, err
}

// until polls.
func until(t *testing.T, every time.Duration, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(contextOf(t), patience)
	defer cancel()
	for {
		ok, err := done(ctx)
		if err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting until %s: %v, %v", what, context.Cause(ctx), err)
		case <-time.After(every):
		}
	}
}
