package machinedeployment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

// ensureCurrent adopts MachineSets, creates the one of the current revision, and numbers revisions.
type ensureCurrent struct {
	writer
}

// Reconcile implements pipeline.Step.
func (e *ensureCurrent) Reconcile(ctx context.Context, s *scope) (bool, error) {
	if s.deployment.Spec.Replicas == nil {
		return false, e.setReplicas(ctx, s)
	}
	for _, set := range s.all {
		if s.wrote || !s.adoptable(set) {
			continue
		}
		if err := e.adopt(ctx, s, set); err != nil {
			return false, fmt.Errorf("adopting MachineSet %s: %w", set.Name, err)
		}
	}
	if s.wrote {
		return false, nil
	}
	var err error
	switch {
	case s.current != nil:
		err = e.number(ctx, s)
	case !s.deployment.Spec.Paused:
		err = e.create(ctx, s)
	}
	return err == nil && !s.wrote, err
}

// setReplicas sets spec.replicas to the number of Machines that there are, so that an adoption deletes none,
// or to 1.
func (e *ensureCurrent) setReplicas(ctx context.Context, s *scope) error {
	var number *int32
	for _, set := range s.all {
		if metav1.IsControlledBy(set, s.deployment) || s.adoptable(set) {
			number = ptr.To(ptr.Deref(number, 0) + ptr.Deref(set.Spec.Replicas, 1))
		}
	}
	deployment := s.deployment.DeepCopy()
	deployment.Spec.Replicas = ptr.To(ptr.Deref(number, 1))
	if err := e.patch(ctx, s, s.deployment, deployment); err != nil {
		return fmt.Errorf("setting spec.replicas, which is missing: %w", err)
	}
	return nil
}

// adoptable reports whether the MachineDeployment takes a MachineSet without a controller: if it has
// the template, or was of a MachineDeployment before.
func (s *scope) adoptable(set *machinev1beta1.MachineSet) bool {
	if metav1.GetControllerOfNoCopy(set) != nil || !set.DeletionTimestamp.IsZero() ||
		controlPlane(set.Spec.Template.Labels) || !machineapi.AuthorityOfMachineSet(set).IsMachineAPI() ||
		!s.selector.Matches(labels.Set(set.Spec.Template.Labels)) {
		return false
	}
	return set.Labels[v1beta1.TemplateHashLabel] != "" || s.current == nil && sameTemplate(s.deployment, set)
}

// adopt makes the MachineDeployment the controller of a MachineSet, which keeps its name and selector.
// Its Machines get the label of the revision from propagate. A rollout of the MachineSet by itself ends: its
// surge becomes a replica, which scale takes away where no available Machine is lost.
func (e *ensureCurrent) adopt(ctx context.Context, s *scope, set *machinev1beta1.MachineSet) error {
	adopted := set.DeepCopy()
	adopted.Spec.Replicas = ptr.To(ptr.Deref(set.Spec.Replicas, 1) + int32(v1beta1.SurgeOf(set)))
	for _, key := range []string{v1beta1.RolloutAnnotation, v1beta1.ReplaceUntilAnnotation, v1beta1.SurgeAnnotation} {
		delete(adopted.Annotations, key)
	}
	adopted.OwnerReferences = append(adopted.OwnerReferences, ownerReference(s.deployment))
	if adopted.Labels[v1beta1.TemplateHashLabel] == "" {
		hash, err := templateHash(s.deployment)
		if err != nil {
			return err
		}
		metav1.SetMetaDataLabel(&adopted.ObjectMeta, v1beta1.TemplateHashLabel, hash)
	}
	if err := e.patch(ctx, s, set, adopted); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Adopted a MachineSet", "MachineSet", set.Name)
	return nil
}

// create creates the MachineSet of the current revision, without Machines yet.
func (e *ensureCurrent) create(ctx context.Context, s *scope) error {
	hash, err := templateHash(s.deployment)
	if err != nil {
		return err
	}
	spec := &s.deployment.Spec
	set := &machinev1beta1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.deployment.Namespace, Name: s.deployment.Name + "-" + hash,
			Labels:          maps.Clone(spec.Template.Labels),
			Annotations:     s.annotations(s.newest() + 1),
			OwnerReferences: []metav1.OwnerReference{ownerReference(s.deployment)},
		},
		Spec: machinev1beta1.MachineSetSpec{
			Replicas: ptr.To[int32](0), Selector: *spec.Selector.DeepCopy(), MinReadySeconds: spec.MinReadySeconds,
			DeletePolicy: s.deletePolicy(), Template: *spec.Template.DeepCopy(),
		},
	}
	metav1.AddLabelToSelector(&set.Spec.Selector, v1beta1.TemplateHashLabel, hash)
	metav1.SetMetaDataLabel(&set.ObjectMeta, v1beta1.TemplateHashLabel, hash)
	set.Spec.Template.Labels = s.labelsOf(set)
	err = e.write(s, func() error { return e.client.Create(ctx, set) })
	if apierrors.IsAlreadyExists(err) {
		// The next reconcile uses another name, unless the API server had created it for an earlier request.
		s.deployment.Status.CollisionCount = ptr.To(ptr.Deref(s.deployment.Status.CollisionCount, 0) + 1)
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating MachineSet %s: %w", set.Name, err)
	}
	s.created = true
	return nil
}

// number gives the current revision the highest number, and the MachineDeployment the same.
func (e *ensureCurrent) number(ctx context.Context, s *scope) error {
	number := s.current.number()
	if newest := s.newest(); number == 0 || number < newest {
		number = newest + 1
	}
	set := s.current.set.DeepCopy()
	for key, value := range s.annotations(number) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, key, value)
	}
	if !maps.Equal(set.Annotations, s.current.set.Annotations) {
		if err := e.patch(ctx, s, s.current.set, set); err != nil {
			return fmt.Errorf("numbering MachineSet %s: %w", set.Name, err)
		}
	}
	deployment := s.deployment.DeepCopy()
	metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, v1beta1.RevisionAnnotation, strconv.FormatInt(number, 10))
	s.showSize(deployment.Annotations)
	if s.wrote || maps.Equal(deployment.Annotations, s.deployment.Annotations) {
		return nil
	}
	if err := e.patch(ctx, s, s.deployment, deployment); err != nil {
		return fmt.Errorf("writing the annotations of the MachineDeployment: %w", err)
	}
	s.deployment, s.before = deployment, deployment.DeepCopy()
	return nil
}

// showSize copies what the autoscaler reads of the current MachineSet, to scale from zero. Values that
// no old MachineSet has are somebody else's, and stay.
func (s *scope) showSize(annotations map[string]string) {
	for key, value := range s.current.set.Annotations {
		was, given := annotations[key]
		copied := func(r *revision) bool { return r.set.Annotations[key] == was }
		if isSize(key) && (!given || slices.ContainsFunc(s.old(), copied)) {
			annotations[key] = value
		}
	}
}

// isSize reports whether an autoscaler reads an annotation: upstream's, or OpenShift's.
func isSize(key string) bool {
	return strings.HasPrefix(key, "capacity.cluster-autoscaler.kubernetes.io/") || slices.Contains([]string{
		"machine.openshift.io/vCPU", "machine.openshift.io/memoryMb", "machine.openshift.io/GPU", "machine.openshift.io/maxPods",
	}, key)
}

// newest returns the highest number of a revision.
func (s *scope) newest() int64 {
	if len(s.revisions) == 0 {
		return 0
	}
	return s.revisions[len(s.revisions)-1].number()
}

// annotations returns those of the current revision's MachineSet.
func (s *scope) annotations(number int64) map[string]string {
	out := map[string]string{v1beta1.RevisionAnnotation: strconv.FormatInt(number, 10)}
	if restart := s.deployment.Spec.Restart(); restart != "" {
		out[v1beta1.RestartedAtAnnotation] = restart
	}
	if cause := s.deployment.Annotations[v1beta1.ChangeCauseAnnotation]; cause != "" {
		out[v1beta1.ChangeCauseAnnotation] = cause
	}
	return out
}

func (s *scope) deletePolicy() string {
	if bounds := s.deployment.Spec.Strategy.RollingUpdate; bounds != nil {
		return string(bounds.DeletePolicy)
	}
	return ""
}

func ownerReference(deployment *v1beta1.MachineDeployment) metav1.OwnerReference {
	return *metav1.NewControllerRef(deployment, v1beta1.GroupVersion.WithKind(v1beta1.MachineDeploymentKind))
}
