//go:build life

package life

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/openstack"
)

var (
	openstackOnTofu = platform{
		name: "openstack", module: "modules/openstack", provider: "openstack", infrastructure: localAPIs, open: openOpenStack,
		above: &exception{limits{22, goal.check, 9}, "a create looks up 7 names; the provider makes, tags and reads\n" +
			"  ports and trunks one by one"},
	}
	openstackOnPulumi = platform{
		name: "openstack on Pulumi", module: "stacks/openstack", provider: "openstack", infrastructure: localAPIs, open: openOpenStack,
		lacks: map[string]string{stepAdoption: noAdoption, stepInventory: noAdoption, stepCalls: "stacks record nothing, and have no goal"},
	}
)

const (
	localAPIs  = "[local APIs](../test/openstack/openstack.go)"
	noAdoption = "no stack can adopt or list: neither has a folder for that"
)

func openOpenStack(w *world) *site {
	cloud := openstack.Start()
	w.t.Cleanup(cloud.Close)
	client, err := cloud.Login(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := client.MakeServerGroup(w.t.Context(), clusterID+"-worker"); err != nil {
		w.t.Fatal(err)
	}
	login := func(password string) map[string][]byte {
		by := openstack.Login{Cloud: openstack.CloudName, Username: openstack.Username, Password: password, Project: "openshift"}
		return map[string][]byte{"clouds.yaml": []byte(cloud.CloudsYAMLOf(by)), "cacert": []byte(cloud.CACert())}
	}
	field := "cloudsSecret"
	if w.stack() {
		field = "credentialsSecret"
	}
	ids := func(_ context.Context, name string) (found []string, err error) {
		for _, server := range cloud.Servers() {
			if server.Name == name {
				found = append(found, server.ID)
			}
		}
		return found, nil
	}
	var held *openstack.Obstruction
	nobodys := cloud.Count()
	s := &site{
		credentials: secret("openstack-cloud-credentials", login(openstack.Password)),
		rotate: func(context.Context) (map[string][]byte, error) {
			cloud.Rotate(openstack.Username, "rotated")
			return login("rotated"), nil
		},
		set:    w.example(nil),
		change: w.otherSecret(field, login(openstack.Password)), refused: with("flavor", "m1.small"), invalid: with("flavor", ""),
		renew: func(context.Context) (func(map[string]any), error) {
			cloud.ReplaceImage("rhcos-next")
			return with("image", "rhcos-next"), nil
		},
		look: ids,
		userData: func(_ context.Context, name string) (string, error) {
			if server := cloud.Server(name); server != nil {
				return server.UserData, nil
			}
			return "", fmt.Errorf("there is no server %s", name)
		},
		remove: func(_ context.Context, name string) error {
			cloud.Delete(name)
			return nil
		},
		lost: func() { nobodys = cloud.Count() },
		slow: func(on bool) {
			if on {
				held = cloud.Obstruct(openstack.Obstacle{Match: openstack.Makes("servers"), ResponseDelay: 5 * time.Second})
			} else if held != nil {
				held.Clear()
			}
		},
	}
	s.left = func(ctx context.Context, names []string) (found []string, err error) {
		for _, name := range names {
			servers, _ := ids(ctx, name)
			found = append(found, servers...)
		}
		if count := cloud.Count(); len(names) > 1 { // by then there is nothing else
			for _, kind := range []string{"ports", "trunks", "volumes"} {
				found = append(found, slices.Repeat([]string{kind}, max(0, count[kind]-nobodys[kind]))...)
			}
		}
		return found, nil
	}
	if !w.stack() {
		s.calls = made(&cloud.Calls)
		s.copy = func(ctx context.Context, _, name string) (string, error) {
			client, err := cloud.Login(ctx) // a rotation has ended the session
			if err != nil {
				return "", err
			}
			for _, kind := range []string{"ports", "trunks"} { // they stay when the server is removed
				nobodys[kind]++
			}
			id, err := client.MakeServer(ctx, name, openstack.Of(clusterID))
			return "openstack:///" + id, err
		}
	}
	return s
}
