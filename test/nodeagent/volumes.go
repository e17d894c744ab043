package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// secretPoll is how often a Secret is looked for that is not there yet.
const secretPoll = 200 * time.Millisecond

// mounts fills the volumes of a Pod, and returns "from=to" for each place where one is mounted.
func (p *processes) mounts(ctx context.Context, of *pod) ([]string, error) {
	for _, volume := range of.object.Spec.Volumes {
		dir := filepath.Join(of.dir, volume.Name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		var err error
		switch {
		case volume.Secret != nil:
			err = p.fillSecret(ctx, of, volume.Secret.SecretName, dir)
		case volume.Projected != nil:
			err = p.fillTokens(ctx, of, volume.Projected.Sources, dir)
		case volume.EmptyDir == nil:
			err = fmt.Errorf("the volume %s is of a kind that this node does not have", volume.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	var places []string
	for _, mount := range of.object.Spec.Containers[0].VolumeMounts {
		if mount.MountPath == shared {
			continue
		}
		places = append(places, filepath.Join(of.dir, mount.Name)+"="+mount.MountPath)
	}
	return places, nil
}

// fillSecret waits for a Secret as a kubelet does.
func (p *processes) fillSecret(ctx context.Context, of *pod, name, dir string) error {
	for {
		secret, err := p.client.CoreV1().Secrets(of.object.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			for file, content := range secret.Data {
				if err := os.WriteFile(filepath.Join(dir, file), content, 0o400); err != nil {
					return err
				}
			}
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(secretPoll):
		}
	}
}

// fillTokens asks for tokens of the Pod's service account, bound to the Pod.
func (p *processes) fillTokens(ctx context.Context, of *pod, sources []corev1.VolumeProjection, dir string) error {
	for _, source := range sources {
		wanted := source.ServiceAccountToken
		if wanted == nil {
			return errors.New("a projected volume has something else than tokens")
		}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: wanted.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: of.object.Name, UID: of.object.UID},
		}}
		if wanted.Audience != "" {
			request.Spec.Audiences = []string{wanted.Audience}
		}
		account := of.object.Spec.ServiceAccountName
		made, err := p.client.CoreV1().ServiceAccounts(of.object.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("asking for a token of service account %s: %w", account, err)
		}
		if err := os.WriteFile(filepath.Join(dir, wanted.Path), []byte(made.Status.Token), 0o400); err != nil {
			return err
		}
	}
	return nil
}

// insideCommand is the first argument of this program inside of a Pod's namespaces.
const insideCommand = "inside"

// shared is a folder that Pods have in common with this machine, since the programs of tests may be there.
const shared = "/tmp"

// hidden are folders of this machine that Pods have empty ones in place of.
var hidden = []string{"/run", "/var/lib"}

// inside mounts the volumes, and becomes the Pod's program.
func inside(arguments []string) error {
	end := slices.Index(arguments, "--")
	if end < 0 || end == len(arguments)-1 {
		return errors.New("the Pod has no command")
	}
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("leaving the mounts of this machine: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, dir := range hidden {
		if err := syscall.Mount("empty", dir, "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", dir, err)
		}
	}
	program, err := exec.LookPath(arguments[end+1])
	if err != nil {
		return err
	}
	places := arguments[:end]
	for _, place := range places {
		from, to, _ := strings.Cut(place, "=")
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", to, err)
		}
	}
	return syscall.Exec(program, arguments[end+1:], os.Environ())
}
