package chaos

import (
	"context"
	"net/http"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// making draws which OpenStack requests to affect: creates of servers, ports or trunks.
func making(draw int) func(*http.Request) bool {
	return openstack.Makes([]string{"servers", "ports", "servers", "trunks"}[draw%4])
}

// hangProvider holds creates. OpenStack executes held requests on release, even if the client was killed.
func hangProvider(_ context.Context, r *round, step Step) error {
	if r.plan.Sets[step.Set].On == OpenStack {
		return r.obstruct(step, openstack.Obstacle{Match: making(step.Draw), Hold: true, Times: 1 + step.Draw/4%2})
	}
	held := r.infra.Hold(apiproxy.BeforeRequest, apiproxy.NodesMade)
	defer held.Lift()
	return lasts(step, "Node", func() int { return len(held.Reached) })
}

// failProvider executes requests, and returns an error or no response.
func failProvider(_ context.Context, r *round, step Step) error {
	silent := step.Draw%2 == 0
	if r.plan.Sets[step.Set].On == OpenStack {
		return r.obstruct(step, openstack.Obstacle{
			Match: making(step.Draw / 2), Status: http.StatusInternalServerError, Silent: silent,
			Times: 1 + step.Draw/8%2,
		})
	}
	f := apiproxy.Fault{At: apiproxy.BeforeResponse, Match: apiproxy.NodesMade, Status: http.StatusInternalServerError,
		Times: 1 + step.Draw/8%2}
	if silent {
		f.Status = 0
	}
	return r.meet(step, f)
}

// slowProvider delays requests or responses.
func slowProvider(_ context.Context, r *round, step Step) error {
	late := step.Draw%2 == 0
	if r.plan.Sets[step.Set].On == OpenStack {
		slow := openstack.Obstacle{Match: making(step.Draw / 2), ResponseDelay: step.For}
		if late {
			slow.Delay, slow.ResponseDelay = step.For, 0
		}
		return r.obstruct(step, slow)
	}
	f := apiproxy.Fault{At: apiproxy.BeforeResponse, Match: apiproxy.NodesMade, Slow: true, Delay: step.For}
	if late {
		f.At = apiproxy.BeforeRequest
	}
	return r.meet(step, f)
}

// patient bounds the wait for a fault's first request: a server follows long after its port.
const patient = 30 * time.Second

// lasts waits until a fault affects a request, and then for the fault's duration.
func lasts(step Step, what string, met func() int) error {
	for end := time.Now().Add(patient); met() == 0; time.Sleep(sight) {
		if time.Now().After(end) {
			return missed("no %s was made in %s", what, patient)
		}
	}
	time.Sleep(step.For)
	return nil
}

func (r *round) obstruct(step Step, o openstack.Obstacle) error {
	put := r.cloud.Obstruct(o)
	defer put.Clear()
	return lasts(step, "thing of the kind", put.Met)
}

func (r *round) meet(step Step, f apiproxy.Fault) error {
	on := r.infra.Inject(f)
	defer on.Lift()
	return lasts(step, "Node", on.Met)
}
