package operands

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	workVolume = "work" // in the manifest
	// providersMount has the mirror that provider images are added to, and the program that adds them.
	providersMount = "/var/lib/machine-iac-providers"
	imagesMount    = "/var/lib/machine-iac-images"   // has the image volumes
	addProviders   = "add-providers"                 // the manager's command
	imageMirror    = "/usr/share/machine-iac/mirror" // of every image that make image builds
)

// Tuning is what an administrator sets of the controllers. Zero values leave what the manifests have.
type Tuning struct {
	Replicas  *int32
	Resources *corev1.ResourceRequirements
	// Env are further variables of the manager. Engines do not inherit them.
	Env []corev1.EnvVar
	// AccountAnnotations are those of the controllers' ServiceAccount, such as a cloud's role.
	AccountAnnotations map[string]string
	Work               Work
	Providers          []ProviderImage
}

// Work is the volume of the manager's work folder.
type Work struct {
	Size *resource.Quantity `json:"size,omitempty"`
	// Medium is Memory, which is the default, or Disk.
	Medium string `json:"medium,omitempty"`
	// StorageClassName has a volume claimed for each Pod instead, which is deleted with it.
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// Validate returns what is wrong with the volume.
func (w Work) Validate() error {
	if w.Medium != "" && w.Medium != "Memory" && w.Medium != "Disk" {
		return fmt.Errorf("medium is %q; set it to Memory or Disk", w.Medium)
	}
	if w.Size != nil && w.Size.Sign() <= 0 {
		return fmt.Errorf("size is %s; set it to an amount such as 2Gi", w.Size)
	}
	if w.StorageClassName != nil && (w.Size == nil || w.Medium != "") {
		return fmt.Errorf("storageClassName needs a size, and no medium")
	}
	return nil
}

// volume changes the volume of the manifest.
func (w Work) volume(to *corev1.VolumeSource) {
	if w.StorageClassName != nil {
		*to = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: w.StorageClassName,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *w.Size}},
			}}}}
		return
	}
	if w.Medium == "Disk" {
		to.EmptyDir.Medium = corev1.StorageMediumDefault
	}
	if w.Size != nil {
		to.EmptyDir.SizeLimit = w.Size
	}
}

// ProviderImage is an image with providers in the folder of the manager's own mirror.
type ProviderImage struct {
	Image string `json:"image"`
	// Mount has the image mounted as a volume instead of copied.
	Mount bool `json:"mount,omitempty"`
}

// Validate returns an error unless the image is pinned: the manager trusts what is in it.
func (p ProviderImage) Validate() error {
	if _, digest, _ := strings.Cut(p.Image, "@"); !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+64 {
		return fmt.Errorf("the image is %q; name it by its digest, such as registry.example/providers@sha256:0a1b", p.Image)
	}
	return nil
}

// set applies the settings to the Deployment, in whose Pods main is the manager's container.
func (t Tuning) set(made *appsv1.Deployment, main *corev1.Container) error {
	if t.Replicas != nil {
		made.Spec.Replicas = t.Replicas
	}
	if t.Resources != nil {
		main.Resources = *t.Resources
	}
	pod := &made.Spec.Template
	at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == workVolume && v.EmptyDir != nil })
	if at < 0 {
		return fmt.Errorf("it has no emptyDir %s", workVolume)
	}
	t.Work.volume(&pod.Spec.Volumes[at].VolumeSource)
	for _, one := range t.Env {
		main.Env = append(slices.DeleteFunc(main.Env, func(e corev1.EnvVar) bool { return e.Name == one.Name }), one)
	}
	t.provide(pod, main)
	return nil
}

// provide has init containers merge the manager's own mirror and those of the provider images. The first one
// links to what is mounted, and copies the manager's program for the others, whose images need no program.
func (t Tuning) provide(pod *corev1.PodTemplateSpec, main *corev1.Container) {
	if len(t.Providers) == 0 {
		return
	}
	mount(pod, main, corev1.Volume{Name: "providers",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, providersMount)
	step := corev1.Container{
		Name: "own-providers", Image: main.Image, Command: []string{"/usr/bin/" + container, addProviders, "--own", imageMirror},
		Resources: main.Resources, SecurityContext: main.SecurityContext,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts:             []corev1.VolumeMount{{Name: "providers", MountPath: providersMount}},
	}
	own := step
	var copies []corev1.Container
	for n, one := range t.Providers {
		step.Name, step.Image = fmt.Sprintf("providers-%d", n), one.Image
		if folder := fmt.Sprintf("%s/%d", imagesMount, n); one.Mount {
			volume := corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: one.Image}}
			mount(pod, main, corev1.Volume{Name: step.Name, VolumeSource: volume}, folder)
			own.VolumeMounts = append(own.VolumeMounts, main.VolumeMounts[len(main.VolumeMounts)-1])
			own.Command = append(own.Command, folder+imageMirror)
			continue
		}
		step.Command = []string{providersMount + "/" + container, addProviders, imageMirror, providersMount}
		copies = append(copies, step)
	}
	own.Command = append(own.Command, providersMount)
	pod.Spec.InitContainers = append(append(pod.Spec.InitContainers, own), copies...)
}

// annotate adds the annotations of the ServiceAccount.
func (t Tuning) annotate(account metav1.Object) {
	annotations := map[string]string{}
	maps.Copy(annotations, account.GetAnnotations())
	maps.Copy(annotations, t.AccountAnnotations)
	account.SetAnnotations(annotations)
}
