package jobs

import (
	"cmp"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The labels of Jobs and their Pods and Secrets.
const (
	// LabelComponent has the value Component, for network policies and selectors.
	LabelComponent = "app.kubernetes.io/component"
	Component      = "machine-run"
	// LabelRun names the run, LabelManager the manager process that created the Job.
	LabelRun     = "machine-iac.io/run"
	LabelManager = "machine-iac.io/run-manager"
	// LabelQueue is Kueue's queue label.
	LabelQueue = "kueue.x-k8s.io/queue-name"
)

// Paths in a Pod.
const (
	// TicketDir is the mount path of the run's Secret.
	TicketDir = "/var/run/machine-iac/run"
	// VolumeDir is the mount path of the volume that contains WorkDir.
	VolumeDir    = "/var/lib/machine-iac"
	cloudToken   = "/var/run/secrets/openshift/serviceaccount"
	nobody       = 65532
	ticketMode   = 0o440
	scratchLimit = "512Mi"
)

// Template is the common part of all Jobs.
type Template struct {
	// Image contains the program with its engine and providers. Command is the program with the
	// flags that it needs before it has connected.
	Image   string
	Command []string
	// ServiceAccount is the Pods' service account, for clouds that trust its tokens. The Pods get
	// no token for the API server.
	ServiceAccount string
	// Resources are the container's resources. The work folder counts as memory.
	Resources corev1.ResourceRequirements
	// Queue is the Kueue LocalQueue that admits the Jobs. If empty, they start at once.
	Queue string
	// Owner is the manager's Pod, with which the Jobs are deleted; nil for none.
	Owner *metav1.OwnerReference
	// Like is the spec of the manager's Pod, from which Jobs take scheduling and image pull
	// settings; nil for none.
	Like *corev1.PodSpec
	// DeadlineSeconds ends a forgotten Job, TTLSeconds removes a finished one, and GraceSeconds is
	// the Pod's termination grace period.
	DeadlineSeconds, GraceSeconds int64
	TTLSeconds                    int32
}

// job returns the Job of a run.
func (t Template) job(name string, labels map[string]string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)}}
	if t.Owner != nil {
		job.OwnerReferences = []metav1.OwnerReference{*t.Owner}
	}
	job.Spec = batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0), Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1),
		ActiveDeadlineSeconds: &t.DeadlineSeconds, TTLSecondsAfterFinished: &t.TTLSeconds,
		PodReplacementPolicy: ptr.To(batchv1.Failed), // never two Pods for one run
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
			Spec: t.pod(name)},
	}
	if t.Queue != "" {
		job.Labels[LabelQueue], job.Spec.Suspend = t.Queue, ptr.To(true)
	}
	return job
}

// pod returns the Pod of one run. It is restricted like the manager's own Pod.
func (t Template) pod(name string) corev1.PodSpec {
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: t.ServiceAccount,
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		TerminationGracePeriodSeconds: &t.GraceSeconds,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nobody), RunAsGroup: ptr.To[int64](nobody),
			FSGroup:        ptr.To[int64](nobody),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "run", Image: t.Image, Command: t.Command, Resources: t.Resources,
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "run", MountPath: TicketDir, ReadOnly: true},
				{Name: "work", MountPath: VolumeDir},
				{Name: "tmp", MountPath: "/tmp"},
				{Name: "cloud-token", MountPath: cloudToken, ReadOnly: true},
			},
		}},
		Volumes: volumes(name),
	}
	if like := t.Like; like != nil {
		pod.ImagePullSecrets, pod.NodeSelector, pod.Tolerations = like.ImagePullSecrets, like.NodeSelector, like.Tolerations
		pod.SecurityContext = cmp.Or(like.SecurityContext, pod.SecurityContext) // some clusters assign user IDs per namespace
		pod.RuntimeClassName, pod.DNSPolicy, pod.DNSConfig, pod.HostAliases = like.RuntimeClassName, like.DNSPolicy,
			like.DNSConfig, like.HostAliases
	}
	return pod
}

func volumes(secret string) []corev1.Volume {
	limit := resource.MustParse(scratchLimit)
	token := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "openshift",
		Path: "token"}}
	return []corev1.Volume{
		{Name: "run", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret,
			DefaultMode: ptr.To[int32](ticketMode)}}},
		{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &limit}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		// Clouds exchange this token for short-lived credentials. It is not valid for the cluster
		// itself.
		{Name: "cloud-token",
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{token}}}},
	}
}

// secret returns the Secret of a Job, which owns it.
func secret(of *batchv1.Job, labels map[string]string, content map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: of.Name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: of.Name, UID: of.UID}},
		},
		Immutable: ptr.To(true), Type: corev1.SecretTypeOpaque, Data: content,
	}
}
