package iac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators/recovery"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/actuators/runner"
	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// variableAdopt is the variable declared by a module's adopt/ folder.
const variableAdopt = "adopt"

// noEngine is the engine label of a run that needs no engine.
const noEngine = "none"

// run is what all runs have in common: tasks, looks and searches that only read.
type run struct {
	actuator *Actuator
	asked    runs.Operation
	key      types.NamespacedName
	uid      types.UID
	// poolKey is the run's key in the pool.
	poolKey runs.Key
	id      string
	// machine is read again under the lock. If it is gone, only its name and namespace are set.
	machine *machinev1beta1.Machine
	// facts, wanted and decision are those of the submission, until a task decides again under the
	// lock. wanted is nil if only an empty state is to be removed.
	facts    *lifecycle.Facts
	wanted   *desired.State
	decision lifecycle.Decision
	// share is the run's part in a batch; nil for a run executed alone.
	share runner.Share
	// transcript is the engine's output. withheld is the part that may contain values of sensitive
	// inputs.
	transcript, withheld reporting.Transcript
}

func newRun(a *Actuator, machine *machinev1beta1.Machine, asked runs.Operation) run {
	return run{
		actuator: a, asked: asked, id: string(uuid.NewUUID()), uid: machine.UID, poolKey: runs.Key(machine.UID),
		key: types.NamespacedName{Namespace: machine.Namespace, Name: machine.Name}, machine: machine.DeepCopy(),
	}
}

// request describes a run for the pool. wanted may be nil. The caller sets Task.
func (r *run) request(wanted *desired.State) runs.Request {
	request := runs.Request{
		Machine: r.key, Key: r.poolKey, Group: groupOf(r.machine), Operation: r.asked, Engine: engineOf(wanted), Run: r.id,
	}
	if wanted == nil {
		return request
	}
	request.Fingerprint, request.Footprint = wanted.Attempt(r.asked), wanted.Module.Digest()
	request.Credential = credentialOf(r.key.Namespace, wanted)
	return request
}

// engineOf returns the engine label of a desired state, which may be nil.
func engineOf(wanted *desired.State) string {
	if wanted == nil {
		return noEngine
	}
	return reporting.EngineLabel(wanted.Module.Engine())
}

// credentialOf names the credentials Secret of a Machine in a namespace, or returns "".
func credentialOf(namespace string, wanted *desired.State) string {
	if wanted.CredentialsSecret == "" {
		return ""
	}
	return namespace + "/" + wanted.CredentialsSecret
}

// identityUID returns the UID that the instance was created with, or will be.
func (r *run) identityUID() types.UID { return r.facts.Identity(r.uid) }

// checkPlace refuses a run in another place than the instance's: results from there say nothing
// about the instance.
func (r *run) checkPlace() error {
	made := r.facts.Record.Place
	if !r.facts.Stored && r.facts.Witness != nil {
		made = r.facts.Witness.Place
	}
	if r.wanted == nil || len(made) == 0 || !r.facts.Bound() {
		return nil
	}
	if r.wanted.PlaceErr != nil {
		return reporting.Typed(r.asked, r.wanted.PlaceErr)
	}
	if !r.wanted.Here(made).Contradicts(r.wanted.Place) {
		return nil
	}
	return reporting.OtherPlace(r.asked, r.facts, made, r.wanted)
}

// spec describes the run for an engine. Only a task adds a session.
func (r *run) spec(ctx context.Context, search engine.Search) (runner.RunSpec, error) {
	around, err := r.actuator.desired.Environment(ctx, r.wanted.Module)
	if err != nil {
		return runner.RunSpec{}, err
	}
	variables, err := r.variables(search)
	if err != nil {
		return runner.RunSpec{}, err
	}
	environment, sensitive := around.With(r.wanted.Inputs.Environment, r.wanted.Inputs.Sensitive)
	return runner.RunSpec{
		ID: r.id,
		Identity: recovery.Identity{
			Namespace: r.key.Namespace, Name: r.key.Name, UID: string(r.uid), Owner: r.actuator.owner, Run: r.id,
		},
		Module:          r.wanted.Module,
		Lineage:         string(r.identityUID()),
		Variables:       variables,
		Environment:     environment,
		Credentials:     credentialOf(r.key.Namespace, r.wanted),
		InitEnvironment: around.Variables,
		Files:           r.wanted.Inputs.Files,
		Sensitive:       sensitive,
		Search:          search,
		Waits:           func(what string) { r.actuator.pool.Waits(r.poolKey, what) },
		Output:          r.transcript.Add,
		Withheld:        r.withheld.Add,
	}, nil
}

// variables returns a run's variables: the rendered ones, the search keys of adopt/, and the
// instance's recorded values.
func (r *run) variables(search engine.Search) ([]byte, error) {
	added := map[string]json.RawMessage{}
	if search == engine.SearchAdopt {
		providerID, id := r.adoptee()
		adopt, err := json.Marshal(map[string]string{"provider_id": providerID, "id": id})
		if err != nil {
			return nil, fmt.Errorf("writing the variable %s: %w", variableAdopt, err)
		}
		added[variableAdopt] = adopt
	}
	if r.wanted.Module.Variable(module.VariableRecorded).Name != "" {
		added[module.VariableRecorded] = r.facts.Recorded()
	}
	if len(added) == 0 {
		return r.wanted.Inputs.Variables, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(r.wanted.Inputs.Variables, &all); err != nil {
		return nil, errors.New("the inputs are not a JSON object") // the decoder's message may contain a value
	}
	maps.Copy(all, added)
	return json.Marshal(all)
}

// adoptee returns the identifiers of the instance to adopt: its provider ID and its ID in the
// infrastructure. One of them may be empty. After the adoption the Machine's fields no longer
// count.
func (r *run) adoptee() (providerID, id string) {
	if r.facts.Adopted() {
		return r.facts.Witness.ProviderID, r.facts.Witness.ID
	}
	return ptr.Deref(r.machine.Spec.ProviderID, ""), r.facts.Adoption.ID
}

// lookAt lets the engine read only the instance in the state. It needs the module's providers, but
// none of the module's data sources or other resources.
func (r *run) lookAt(ctx context.Context) (gone bool, err error) {
	with, able := r.actuator.runners[r.wanted.Module.Engine()].(runner.InstanceChecker)
	if !able || len(r.wanted.Module.Bare().HCL) == 0 {
		return false, fmt.Errorf("module %s does not support looks", r.wanted.Module.Name())
	}
	spec, err := r.spec(ctx, engine.SearchNone)
	if err != nil {
		return false, err
	}
	check := with.CheckInstance
	if r.share != nil {
		check = r.share.CheckInstance
	}
	return check(ctx, spec, r.facts.Raw)
}
