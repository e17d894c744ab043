package openstack_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// aPort returns a request for a Machine's port.
func (a *asker) aPort(name, machine string) any {
	a.t.Helper()
	network := a.id(a.endpoints["network"]+"/v2.0/networks?name="+openstack.Cluster+"-openshift", "networks")
	return map[string]any{"port": map[string]any{
		"name": name, "network_id": network, "description": "Machine n/" + name + " " + machine,
	}}
}

func entered(t *testing.T) (*openstack.Cloud, *asker, string) {
	t.Helper()
	c := openstack.Start()
	t.Cleanup(c.Close)
	a := newAsker(t, c)
	if status := a.login(openstack.Password); status != http.StatusCreated {
		t.Fatalf("the password: %d", status)
	}
	return c, a, a.endpoints["network"] + "/v2.0/ports"
}

func TestAnObstacleIsMet(t *testing.T) {
	ports := openstack.Makes("ports")
	for name, tc := range map[string]struct {
		obstacle openstack.Obstacle
		// wantStatus is zero for no response.
		wantStatus, wantMade int
	}{
		"refused":                         {openstack.Obstacle{Match: ports, Refuse: true, Status: 503}, 503, 0},
		"failed after it was carried out": {openstack.Obstacle{Match: ports, Status: 500}, 500, 1},
		"no response":                     {openstack.Obstacle{Match: ports, Silent: true}, 0, 1},
		"lost":                            {openstack.Obstacle{Match: ports, Silent: true, Refuse: true}, 0, 0},
		"late":                            {openstack.Obstacle{Match: ports, Delay: time.Millisecond}, 201, 1},
		"a late response":                 {openstack.Obstacle{Match: ports, ResponseDelay: time.Millisecond}, 201, 1},
		"in the way of others": {
			openstack.Obstacle{Match: openstack.Removes("ports"), Refuse: true, Status: 503}, 201, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, a, address := entered(t)
			put := c.Obstruct(tc.obstacle)
			status := a.asks(t.Context(), address, a.aPort("p", "uid"))
			if met := put.Clear(); status != tc.wantStatus || c.Count()["ports"] != tc.wantMade ||
				(met == 1) != (name != "in the way of others") {
				t.Errorf("got status %d, %v, met %d times; want %d and %d ports", status, c.Count(), met,
					tc.wantStatus, tc.wantMade)
			}
		})
	}
}

// asks returns the status of a create, or zero without a response.
func (a *asker) asks(ctx context.Context, address string, body any) int {
	a.t.Helper()
	request := a.request(ctx, http.MethodPost, address, body)
	response, err := a.client.Do(request)
	if err != nil {
		if !strings.Contains(err.Error(), "EOF") && !errors.Is(err, context.DeadlineExceeded) {
			a.t.Error(err)
		}
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestAHeldRequestIsCarriedOutAlthoughItsAskerHasGone(t *testing.T) {
	c, a, address := entered(t)
	put := c.Obstruct(openstack.Obstacle{Match: openstack.Makes("ports"), Hold: true})
	body := a.aPort("p", "uid")
	impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if status := a.asks(impatient, address, body); status != 0 || c.Count()["ports"] != 0 {
		t.Fatalf("got status %d, %v", status, c.Count())
	}
	put.Clear()
	for end := time.Now().Add(10 * time.Second); c.Count()["ports"] == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not carried out")
		}
	}
}

func TestProjectsDoNotSeeEachOther(t *testing.T) {
	c, a, ports := entered(t)
	_, response := a.ask(http.MethodPost, ports, a.aPort("p", "uid"))
	port := ports + "/" + response["port"].(map[string]any)["id"].(string)
	c.AddProject(openstack.Login{Cloud: "other", Username: "guest", Password: "guest", Project: "guests"})
	if status := a.loginAs("guest", "guest"); status != http.StatusCreated {
		t.Fatalf("another login: %d", status)
	}
	if status, response := a.ask(http.MethodGet, port, nil); status != http.StatusNotFound {
		t.Errorf("another project's port: %d, %v", status, response)
	}
	if _, response := a.ask(http.MethodGet, ports+"?name=p", nil); len(response["ports"].([]any)) > 0 {
		t.Errorf("it is listed: %v", response)
	}
	if status, _ := a.ask(http.MethodPost, ports, a.aPort("q", "uid")); status != http.StatusCreated {
		t.Errorf("a port of its own: %d", status)
	}
	if got := c.MachinesIn("guests"); len(got) != 1 || got[0] != "uid" {
		t.Errorf("the other project has things of Machines %q, want the one of the port", got)
	}
	if got := c.MachinesIn("nobody's"); len(got) > 0 {
		t.Errorf("a project that is not there has things of Machines %q", got)
	}
	if got := c.CloudsYAMLOf(openstack.Login{
		Cloud: "other", Username: "guest", Password: "guest", Project: "guests",
	}); !strings.Contains(got, "other:") || !strings.Contains(got, "project_name: guests") {
		t.Error(got)
	}
}

func TestARotatedPasswordEndsSessions(t *testing.T) {
	c, a, ports := entered(t)
	c.Rotate(openstack.Username, "new")
	if status, _ := a.ask(http.MethodGet, ports, nil); status != http.StatusUnauthorized {
		t.Errorf("with the old token: %d", status)
	}
	if status := a.login(openstack.Password); status != http.StatusUnauthorized {
		t.Errorf("with the old password: %d", status)
	}
	if status := a.login("new"); status != http.StatusCreated {
		t.Errorf("with the new password: %d", status)
	}
}

func TestHistoryKeepsWhatWasMade(t *testing.T) {
	c, a, ports := entered(t)
	var ids []string
	for range 2 {
		_, response := a.ask(http.MethodPost, ports, a.aPort("p", "uid"))
		ids = append(ids, response["port"].(map[string]any)["id"].(string))
	}
	if all := c.History(); len(all) != 2 || all[0].Machine != "uid" || all[0].Name != "p" || all[0].Kind != "ports" ||
		!all[0].Together(all[1]) {
		t.Fatalf("%+v", all)
	}
	a.ask(http.MethodDelete, ports+"/"+ids[0], nil)
	if all := c.History(); len(all) != 2 || all[0].Removed.IsZero() || !all[1].Removed.IsZero() ||
		!all[0].Together(all[1]) {
		t.Errorf("%+v", all)
	}
	_, _ = a.ask(http.MethodPost, ports, a.aPort("p", "uid"))
	if all := c.History(); len(all) != 3 || all[0].Together(all[2]) {
		t.Errorf("the first was gone before the third came: %+v", all)
	}
	if c.Reset(); len(c.History()) > 0 || c.Count()["ports"] > 0 {
		t.Errorf("after a reset: %v", c.Count())
	}
}
