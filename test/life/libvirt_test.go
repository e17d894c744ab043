//go:build life

package life

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/machine-iac/machine-iac-operator/test/libvirt"
)

var qemu = platform{
	name: "libvirt", module: "modules/libvirt", provider: "libvirt", infrastructure: "[QEMU](../hack/libvirt.sh)",
	open:   openLibvirt,
	lacks:  map[string]string{stepRotation: "the kind names no credentials: the uri says how the manager signs in", stepCalls: "libvirt limits no calls"},
	absent: withoutLibvirt(),
}

func withoutLibvirt() string {
	if libvirt.Runs() {
		return ""
	}
	return "there is no libvirt: 'make life PLATFORM=libvirt' starts one, as root"
}

// openLibvirt has volumes without an operating system, so that no guest asks for an address.
func openLibvirt(w *world) *site {
	opened, err := libvirt.Open(w.t.Context(), clusterID)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("domains are of type %s: %s", opened.DomainType, opened.Reason)
	w.t.Cleanup(func() {
		if err := opened.Close(context.WithoutCancel(w.t.Context())); err != nil {
			w.t.Error(err)
		}
	})
	h := guests{opened}
	first, err := h.image(w.t.Context(), "rhcos")
	if err != nil {
		w.t.Fatal(err)
	}
	s := &site{
		set: w.example(func(spec map[string]any) {
			first(spec)
			spec["uri"], spec["domainMemory"], spec["domainVcpu"], spec["networkInterfaceAddress"] = h.URI, libvirt.Memory, 1, ""
		}),
		change: with("autostart", true), refused: with("domainVcpu", 2), invalid: with("domainMemory", "plenty"),
		renew: func(ctx context.Context) (func(map[string]any), error) {
			next, err := h.image(ctx, "rhcos-next")
			return next, errors.Join(err, h.delete(ctx, "rhcos"))
		},
		look: h.look, userData: h.userData, remove: h.remove, left: h.left,
		copy: func(ctx context.Context, _, name string) (string, error) {
			uuid, err := h.MakeDomain(ctx, name, "a worker of the cluster "+clusterID)
			return "libvirt:///" + uuid, err
		},
	}
	for name, value := range h.Environment() {
		s.flags = append(s.flags, "--engine-env="+name+"="+value)
	}
	return s
}

// guests are the domains of a libvirt, and their volumes.
type guests struct{ *libvirt.Host }

// image makes a base volume, and has a providerSpec name it.
func (g guests) image(ctx context.Context, name string) (func(map[string]any), error) {
	_, err := g.Virsh(ctx, "vol-create-as", g.Name, name, "64M", "--format", "qcow2")
	return with("volume", map[string]any{"poolName": g.Name, "baseVolumeID": name}), err
}

func (g guests) delete(ctx context.Context, volume string) error {
	_, err := g.Virsh(ctx, "vol-delete", volume, "--pool", g.Name)
	return err
}

func (g guests) look(ctx context.Context, name string) (found []string, err error) {
	out, err := g.Virsh(ctx, "list", "--all", "--uuid", "--name")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == name {
			found = append(found, fields[0])
		}
	}
	return found, err
}

// ignition is the file with a domain's user data.
var ignition = regexp.MustCompile(`name=opt/com.coreos/config,file=([^']+)'`)

func (g guests) userData(ctx context.Context, name string) (string, error) {
	definition, err := g.Virsh(ctx, "dumpxml", name)
	if err != nil {
		return "", err
	}
	file := ignition.FindStringSubmatch(definition)
	if file == nil {
		return "", fmt.Errorf("%s reads no Ignition configuration", name)
	}
	content, err := os.ReadFile(file[1])
	return string(content), err
}

// volumes returns those of a domain: of its name, and where the module has made them with the Machine's UID behind it.
func (g guests) volumes(name string) (found []string, err error) {
	entries, err := os.ReadDir(g.Pool)
	for _, entry := range entries {
		if entry.Name() == name || strings.HasPrefix(entry.Name(), name+"-") {
			found = append(found, entry.Name())
		}
	}
	return found, err
}

func (g guests) remove(ctx context.Context, name string) error {
	_, _ = g.Virsh(ctx, "destroy", name) // it may be off
	_, undefined := g.Virsh(ctx, "undefine", name)
	volumes, err := g.volumes(name)
	problems := []error{undefined, err}
	for _, volume := range volumes {
		problems = append(problems, g.delete(ctx, volume))
	}
	return errors.Join(problems...)
}

func (g guests) left(ctx context.Context, names []string) (found []string, err error) {
	for _, name := range names {
		domains, unlisted := g.look(ctx, name)
		volumes, unread := g.volumes(name)
		found, err = append(append(found, domains...), volumes...), errors.Join(err, unlisted, unread)
	}
	return found, err
}
