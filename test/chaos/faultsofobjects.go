package chaos

import (
	"context"
	"errors"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

// stateWrites fails writes of states, with a status or without a response. Every other time, the API server still
// executes the write if possible.
func stateWrites(status int) injector {
	return func(_ context.Context, r *round, step Step) error {
		f := apiproxy.Fault{At: apiproxy.BeforeRequest, Match: apiproxy.WritesState, Status: status,
			Times: 1 + step.Draw/2%6}
		if (status == 0 || status == 500) && step.Draw%2 == 0 {
			f.At = apiproxy.BeforeResponse
		}
		var on []*apiproxy.Injection
		for _, replica := range r.replicas {
			injected := replica.proxy.Inject(f)
			defer injected.Lift()
			on = append(on, injected)
		}
		return lasts(step, "write of a state", func() int { return on[0].Met() + on[1].Met() })
	}
}

func rotateCredentials(ctx context.Context, r *round, step Step) error {
	return until(ctx, asking, func(ctx context.Context) error {
		if r.plan.Sets[step.Set].On != OpenStack {
			return r.rotateKubemark(ctx)
		}
		return r.rotateOpenStack(ctx)
	})
}

func (w *world) credentialsOf(on Workload) string {
	if on == OpenStack {
		return openstackCredentials
	}
	return kubemarkCredentials
}

// deleteCredentials deletes the Secret for a while.
func deleteCredentials(ctx context.Context, r *round, step Step) error {
	name := r.credentialsOf(r.plan.Sets[step.Set].On)
	secret := &corev1.Secret{}
	err := until(ctx, asking, func(ctx context.Context) error {
		return r.client.Get(ctx, client.ObjectKey{Namespace: inNamespace(name).Namespace, Name: name}, secret)
	})
	if err != nil {
		return err
	}
	back := r.healLater(func(ctx context.Context) error {
		return until(ctx, asking, func(ctx context.Context) error { return r.putSecret(ctx, name, secret.Data) })
	})
	err = until(ctx, asking, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.client.Delete(ctx, &corev1.Secret{ObjectMeta: inNamespace(name)}))
	})
	time.Sleep(step.For)
	return errors.Join(err, back(ctx))
}

// othersCredentials replaces the credentials by another account's for a while.
func othersCredentials(ctx context.Context, r *round, step Step) error {
	back := r.healLater(func(ctx context.Context) error {
		return until(ctx, asking, func(ctx context.Context) error {
			return r.putSecret(ctx, openstackCredentials, r.clouds(r.mine, r.theirs))
		})
	})
	others := r.theirs
	others.Cloud = openstack.CloudName
	err := until(ctx, asking, func(ctx context.Context) error {
		return r.putSecret(ctx, openstackCredentials, r.clouds(others))
	})
	time.Sleep(step.For)
	if step.Draw%2 == 0 { // a user deletes a Machine meanwhile
		if machine, missing := r.victim(ctx, step, time.Second, nil); missing == nil {
			err = errors.Join(err, client.IgnoreNotFound(r.client.Delete(ctx, machine)))
			time.Sleep(step.For)
		}
	}
	return errors.Join(err, back(ctx))
}

// editPlace makes a running Machine refer to another cloud. Every other time it stays so until the Machine is deleted.
func editPlace(ctx context.Context, r *round, step Step) error {
	machine, err := r.victim(ctx, step, r.options.Patience/2, isRunning)
	if err != nil {
		return err
	}
	edit := func(ctx context.Context, cloud string) error {
		return until(ctx, asking, func(ctx context.Context) error {
			return client.IgnoreNotFound(r.edit(ctx, OpenStack, machine.Name, map[string]any{"cloudName": cloud}))
		})
	}
	if err := edit(ctx, otherCloud); err != nil || step.Draw%2 == 0 {
		return err
	}
	back := r.healLater(func(ctx context.Context) error { return edit(ctx, openstack.CloudName) })
	time.Sleep(step.For)
	return back(ctx)
}

// removeInstance removes the instance of a running Machine, which may then fail.
func removeInstance(ctx context.Context, r *round, step Step) error {
	machine, err := r.victim(ctx, step, r.options.Patience/2, isRunning)
	if err != nil {
		return err
	}
	r.take(machine)
	r.expect(func(e *Expected) { e.MayFail[string(machine.UID)] = true })
	if r.plan.Sets[step.Set].On == OpenStack {
		if !r.cloud.Delete(machine.Name) {
			return missed("Machine %s has no server", machine.Name)
		}
		return nil
	}
	return until(ctx, asking, func(ctx context.Context) error {
		node := &corev1.Node{}
		node.Name = machine.Name
		return client.IgnoreNotFound(r.client.Delete(ctx, node))
	})
}

func editInstance(ctx context.Context, r *round, step Step) error {
	machine, err := r.victim(ctx, step, r.options.Patience/2, isRunning)
	if err != nil {
		return err
	}
	if r.plan.Sets[step.Set].On == OpenStack {
		if !r.cloud.Set(machine.Name, "Name", "edited") {
			return missed("Machine %s has no server", machine.Name)
		}
		return nil
	}
	return until(ctx, asking, func(ctx context.Context) error {
		node := &corev1.Node{}
		node.Name = machine.Name
		patch := client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"edited"}}}`))
		return client.IgnoreNotFound(r.client.Patch(ctx, node, patch))
	})
}

// removeFinalizer deletes a Machine and removes its finalizer.
func removeFinalizer(ctx context.Context, r *round, step Step) error {
	machine, err := r.victim(ctx, step, hunt, nil)
	if err != nil {
		return err
	}
	r.take(machine)
	r.expect(func(e *Expected) { e.Forced[string(machine.UID)] = true })
	if err := until(ctx, asking, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.client.Delete(ctx, machine))
	}); err != nil {
		return err
	}
	time.Sleep(time.Duration(step.Draw%1500) * time.Millisecond)
	return until(ctx, asking, func(ctx context.Context) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		return client.IgnoreNotFound(r.client.Patch(ctx,
			&machinev1beta1.Machine{ObjectMeta: inNamespace(machine.Name)}, patch))
	})
}

// loseState deletes the Secrets with a Machine's state, and returns them.
func (r *round) loseState(ctx context.Context, step Step) ([]corev1.Secret, error) {
	machine, err := r.victim(ctx, step, hunt, func(m *machinev1beta1.Machine) bool {
		secrets, err := r.stateSecrets(ctx, string(m.UID))
		return err == nil && len(secrets) > 0
	})
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Duration(step.Draw%2000) * time.Millisecond)
	var lost []corev1.Secret
	err = until(ctx, asking, func(ctx context.Context) error {
		secrets, err := r.stateSecrets(ctx, string(machine.UID))
		if err != nil {
			return err
		}
		if lost == nil {
			lost = secrets
		}
		var failed []error
		for i := range secrets {
			failed = append(failed, r.removeByForce(ctx, secrets[i].DeepCopy()))
		}
		return errors.Join(failed...)
	})
	return lost, err
}

func deleteState(ctx context.Context, r *round, step Step) error {
	_, err := r.loseState(ctx, step)
	return err
}

// restoreState restores the Secrets, as from a backup, unless new ones exist.
func restoreState(ctx context.Context, r *round, step Step) error {
	lost, err := r.loseState(ctx, step)
	if err != nil {
		return err
	}
	time.Sleep(step.For)
	for _, secret := range slices.Backward(lost) { // the head first
		secret.ResourceVersion, secret.UID = "", ""
		other := false
		err := until(ctx, asking, func(ctx context.Context) error {
			err := r.client.Create(ctx, secret.DeepCopy())
			other = apierrors.IsAlreadyExists(err)
			return client.IgnoreAlreadyExists(err)
		})
		if err != nil || other {
			return err
		}
	}
	return nil
}
