//go:build life

package life

import (
	"context"
	"encoding/base64"
	"errors"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

var vsphere = platform{
	name: "vsphere", module: "modules/vsphere", provider: "vsphere", infrastructure: "[vcsim](../test/vcenter/vcsim/main.go)",
	lacks: map[string]string{stepRotation: "vcsim knows one login, which is given to it at start"},
	open:  openVSphere,
	above: &exception{limits{60, 11, 19}, "the provider walks paths, and reads policies and tags apart; a check\n" +
		"  after a pause of more than 30 s takes 3 more"},
}

func openVSphere(w *world) *site {
	v, err := vcenter.Start(w.t.Context(), w.lab.Path("bin", "vcsim"), w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := v.Close(); err != nil {
			w.t.Error(err)
		}
	})
	const template, next = vcenter.Folder + "/template", vcenter.Folder + "/next"
	if err := v.Clone(w.t.Context(), template, 2, 4096); err != nil {
		w.t.Fatal(err)
	}
	path := func(name string) string { return vcenter.Folder + "/" + name }
	return &site{
		status:      &configv1.InfrastructureStatus{PlatformStatus: &configv1.PlatformStatus{Type: configv1.VSpherePlatformType}},
		authorities: w.read(v.Environment()["SSL_CERT_FILE"]), proxy: v.Environment()["HTTPS_PROXY"],
		credentials: secret("vsphere-cloud-credentials", map[string][]byte{
			vcenter.Name + ".username": []byte(vcenter.Username), vcenter.Name + ".password": []byte(vcenter.Password),
		}),
		set: w.example(func(spec map[string]any) {
			workspace := spec["workspace"].(map[string]any)
			spec["template"], workspace["server"], workspace["folder"] = template, vcenter.Name, vcenter.Folder
		}),
		change: with("tagIDs", []string{v.Tag}), refused: with("numCPUs", 8), invalid: with("diskGiB", "much"),
		renew: func(ctx context.Context) (func(map[string]any), error) {
			return with("template", next), errors.Join(v.Clone(ctx, next, 2, 4096), v.Destroy(ctx, template))
		},
		look: func(ctx context.Context, name string) ([]string, error) {
			found, err := v.VM(ctx, path(name))
			if err != nil || found == nil {
				return nil, err
			}
			return []string{found.UUID}, nil
		},
		userData: func(ctx context.Context, name string) (string, error) {
			found, err := v.VM(ctx, path(name))
			if err != nil {
				return "", err
			}
			raw, err := base64.StdEncoding.DecodeString(found.ExtraConfig["guestinfo.ignition.config.data"])
			return string(raw), err
		},
		remove: func(ctx context.Context, name string) error {
			found, err := v.VM(ctx, path(name))
			if err != nil || found == nil {
				return err
			}
			return v.Destroy(ctx, path(name))
		},
		copy: func(ctx context.Context, _, name string) (string, error) {
			err := v.Clone(ctx, path(name), 4, 16384)
			if err == nil {
				err = v.TagCluster(ctx, path(name), clusterID)
			}
			if err != nil {
				return "", err
			}
			found, err := v.VM(ctx, path(name))
			if err != nil {
				return "", err
			}
			return "vsphere://" + found.UUID, nil
		},
		left: func(ctx context.Context, names []string) (found []string, err error) {
			for _, name := range names {
				vm, err := v.VM(ctx, path(name))
				if err != nil {
					return nil, err
				}
				if vm != nil {
					found = append(found, path(name))
				}
				file := "[LocalDS_0] " + name + "/" + name + ".vmdk"
				there, err := v.HasFile(ctx, file)
				if err != nil {
					return nil, err
				}
				if there {
					found = append(found, file)
				}
			}
			return found, nil
		},
		deny: func(ctx context.Context, what denial) error {
			return v.Deny(ctx, map[denial][]string{denyCreates: {"CloneVM_Task"}, denyDeletions: {"Destroy_Task"}}[what]...)
		},
		refusal: "NoPermission", replaces: true, calls: v.Calls,
	}
}
