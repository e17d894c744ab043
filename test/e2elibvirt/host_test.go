//go:build e2e_libvirt

package e2elibvirt_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/test/libvirt"
)

const (
	// hostName is the installer's name for the pool and the network, baseName the base volume.
	hostName = "demo-x7k2p"
	baseName = hostName + "-base"
)

// host is the Machines' libvirt, independent of the operator.
type host struct{ *libvirt.Host }

// openHost creates what an installer creates. It never skips: a requested test that did not run must not count as
// passed.
func openHost(ctx context.Context) *host {
	GinkgoHelper()
	opened, err := libvirt.Open(ctx, hostName)
	Expect(err).NotTo(HaveOccurred())
	h := &host{opened}
	fmt.Printf("domains are of type %s: %s\n", h.DomainType, h.Reason)
	h.virsh(ctx, "vol-create-as", hostName, baseName, "64M", "--format", "qcow2")
	return h
}

func (h *host) virsh(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	out, err := h.Virsh(ctx, arguments...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// domains returns the names of all domains, running or not.
func (h *host) domains(ctx context.Context) []string {
	GinkgoHelper()
	names, err := h.Domains(ctx)
	Expect(err).NotTo(HaveOccurred())
	return names
}

// volumes returns the pool's files except the base volume.
func (h *host) volumes() []string {
	GinkgoHelper()
	entries, err := os.ReadDir(h.Pool)
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, entry := range entries {
		if entry.Name() != baseName {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names
}

type domain struct {
	Type        string `xml:"type,attr"`
	UUID        string `xml:"uuid"`
	Description string `xml:"description"`
	Memory      struct {
		Unit  string `xml:"unit,attr"`
		Value int    `xml:",chardata"`
	} `xml:"memory"`
	Processors int `xml:"vcpu"`
	Disks      []struct {
		Source struct {
			Pool   string `xml:"pool,attr"`
			Volume string `xml:"volume,attr"`
		} `xml:"source"`
	} `xml:"devices>disk"`
	Interfaces []struct {
		Source struct {
			Network string `xml:"network,attr"`
		} `xml:"source"`
	} `xml:"devices>interface"`
	Arguments []struct {
		Value string `xml:"value,attr"`
	} `xml:"http://libvirt.org/schemas/domain/qemu/1.0 commandline>arg"`
}

func (h *host) domain(ctx context.Context, name string) domain {
	GinkgoHelper()
	var found domain
	Expect(xml.Unmarshal([]byte(h.virsh(ctx, "dumpxml", name)), &found)).To(Succeed())
	return found
}

func (h *host) state(ctx context.Context, name string) string {
	GinkgoHelper()
	return h.virsh(ctx, "domstate", name)
}
