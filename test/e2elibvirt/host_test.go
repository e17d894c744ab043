//go:build e2e_libvirt

package e2elibvirt_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	// poolName, baseName and networkName are what an installer lays down.
	poolName    = "demo-x7k2p"
	baseName    = "demo-x7k2p-base"
	networkName = "demo-x7k2p"
)

// host is the libvirt that Machines live on, seen from outside of the operator.
type host struct {
	uri, domainType string
	// dir is seen by libvirt as well, pool is where its volumes lie.
	dir, pool string
}

// openHost lays down what an installer does. There is no skipping: a test that was asked for and did not run would pass for one.
func openHost(ctx context.Context) *host {
	GinkgoHelper()
	h := &host{uri: os.Getenv("LIBVIRT_DEFAULT_URI"), dir: os.Getenv("LIBVIRT_DIR"), domainType: os.Getenv("E2E_LIBVIRT_TYPE")}
	bridge := os.Getenv("LIBVIRT_BRIDGE")
	if h.uri == "" || h.dir == "" || bridge == "" {
		Fail("there is no libvirt to test with: run 'make e2e-libvirt', which starts one")
	}
	if h.domainType == "" {
		h.domainType = "kvm"
		if _, err := h.run(ctx, "domcapabilities", "--virttype", "kvm"); err != nil {
			h.domainType = "qemu"
		}
	}
	fmt.Printf("domains are of type %s\n", h.domainType)
	h.pool = filepath.Join(h.dir, "pool")
	Expect(os.Mkdir(h.pool, 0o755)).To(Succeed())
	h.virsh(ctx, "pool-create-as", poolName, "dir", "--target", h.pool)
	h.virsh(ctx, "vol-create-as", poolName, baseName, "64M", "--format", "qcow2")
	network := filepath.Join(h.dir, "network.xml")
	definition := fmt.Sprintf("<network><name>%s</name><forward mode='bridge'/><bridge name='%s'/></network>", networkName, bridge)
	Expect(os.WriteFile(network, []byte(definition), 0o600)).To(Succeed())
	h.virsh(ctx, "net-create", network)
	return h
}

func (h *host) run(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "virsh", append([]string{"--connect", h.uri, "--quiet"}, arguments...)...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("virsh %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func (h *host) virsh(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	out, err := h.run(ctx, arguments...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// domains returns the names of all domains, running or not.
func (h *host) domains(ctx context.Context) []string {
	GinkgoHelper()
	return strings.Fields(h.virsh(ctx, "list", "--all", "--name"))
}

// volumes returns the files in the pool beside the base volume.
func (h *host) volumes() []string {
	GinkgoHelper()
	entries, err := os.ReadDir(h.pool)
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

// domain is a domain as libvirt reports it.
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
