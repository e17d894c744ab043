package modules_test

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

const openstackClouds = `clouds:
  openstack:
    auth: {auth_url: "https://keystone.example.com:5000/v3", username: installer, password: hush, project_name: demo, project_domain_name: Default, user_domain_name: Default}
    region_name: RegionOne
  other:
    auth: {auth_url: "https://keystone.example.com:5000/v3", username: installer, password: hush, project_name: demo, project_domain_name: Default, user_domain_name: Default}
    region_name: RegionTwo
`

func awsSecret(id string) map[string]string {
	return map[string]string{"aws_access_key_id": id, "aws_secret_access_key": "hush"}
}

func azureSecret(subscription, client string) map[string]string {
	return map[string]string{"azure_subscription_id": subscription, "azure_tenant_id": "t", "azure_client_id": client, "azure_client_secret": "hush"}
}

func nutanixSecret(endpoint, password string) map[string]string {
	return map[string]string{
		"credentials": `[{"type":"basic_auth","data":{"prismCentral":{"username":"admin","password":"` + password + `"},"prismElements":null}}]`,
		"endpoint":    endpoint, "port": "9440",
	}
}

func kubernetesSecret(server, token string) map[string]string {
	return map[string]string{"server": server, "token": token, "ca.crt": "-"}
}

// TestPlaces has the example of each module in its place; then what moves it, and what does not.
func TestPlaces(t *testing.T) {
	type other struct {
		secret map[string]string
		change string
		want   string
	}
	openstack := map[string]string{"clouds.yaml": openstackClouds}
	clouds := func(old, new string) map[string]string {
		return map[string]string{"clouds.yaml": strings.Replace(openstackClouds, old, new, 1)}
	}
	cases := map[string]struct {
		secret map[string]string
		want   string
		others map[string]other
	}{
		"openstack": {secret: openstack, want: "endpoint https://keystone.example.com:5000/v3, project demo, project domain Default, region RegionOne", others: map[string]other{
			"another password": {secret: clouds("installer, password: hush", "renewed, password: other")},
			"another cloud":    {secret: openstack, change: `{"cloudName": "other"}`, want: "region was RegionOne and is now RegionTwo"},
			"another project":  {secret: clouds("project_name: demo", "project_name: prod"), want: "project was demo and is now prod"},
			"another Keystone": {secret: clouds("keystone", "k2"), want: "endpoint was https://keystone.example.com:5000/v3 and is now https://k2.example.com:5000/v3"},
			"an application credential": {
				secret: clouds("username: installer, password: hush, project_name: demo, project_domain_name: Default, ", "application_credential_id: a, application_credential_secret: hush, "),
				want:   "project was demo and is now unknown, project domain was Default and is now unknown",
			},
		}},
		"aws": {secret: awsSecret("ASIAQNZGKIQY56JQ7WML"), want: "account 029608264753, region us-east-1", others: map[string]other{
			"another key":     {secret: awsSecret("AKIAQNZGKIQYZZZZZZZZ")},
			"a role":          {secret: map[string]string{"credentials": strings.Replace(awsRole, "123456789012", "029608264753", 1)}},
			"another account": {secret: awsSecret("ASIAY34FZKBOKMUTVV7A"), want: "account was 029608264753 and is now 609629065308"},
			"a role of another account, which counts before keys": {
				secret: map[string]string{"credentials": awsRole, "aws_access_key_id": "ASIAQNZGKIQY56JQ7WML", "aws_secret_access_key": "hush"},
				want:   "account was 029608264753 and is now 123456789012",
			},
			"another region": {secret: awsSecret("ASIAQNZGKIQY56JQ7WML"), change: `{"placement": {"region": "eu-west-1", "availabilityZone": "eu-west-1a"}}`, want: "region was us-east-1 and is now eu-west-1"},
		}},
		"azure": {secret: azureSecret("s-1", "c"), want: "resource group demo-x7k2p-rg, subscription s-1", others: map[string]other{
			"another identity":       {secret: azureSecret("s-1", "d")},
			"another subscription":   {secret: azureSecret("s-2", "c"), want: "subscription was s-1 and is now s-2"},
			"another resource group": {secret: azureSecret("s-1", "c"), change: `{"resourceGroup": "r"}`, want: "resource group was demo-x7k2p-rg and is now r"},
		}},
		"gcp": {secret: map[string]string{"service_account.json": googleKey}, want: "project my-project, zone us-central1-a", others: map[string]other{
			"a key of another project": {secret: map[string]string{"service_account.json": strings.Replace(googleKey, "acme", "other", 1)}},
			"another zone":             {secret: map[string]string{"service_account.json": googleKey}, change: `{"zone": "us-central1-b"}`, want: "zone was us-central1-a and is now us-central1-b"},
			"another project":          {secret: map[string]string{"service_account.json": googleKey}, change: `{"projectID": "p"}`, want: "project was my-project and is now p"},
		}},
		"vsphere": {secret: map[string]string{"vcenter.example.com.username": "u", "vcenter.example.com.password": "hush", "v2.username": "u", "v2.password": "hush"}, want: "datacenter DC0, vCenter vcenter.example.com", others: map[string]other{
			"another vCenter": {
				secret: map[string]string{"v2.username": "u", "v2.password": "hush"},
				change: `{"workspace": {"server": "v2", "datacenter": "DC0", "datastore": "d", "resourcePool": "/DC0/host/c/Resources"}}`,
				want:   "vCenter was vcenter.example.com and is now v2",
			},
		}},
		"nutanix": {secret: nutanixSecret("pc.example.com", "hush"), want: "Prism Central pc.example.com, port 9440", others: map[string]other{
			"another password":      {secret: nutanixSecret("pc.example.com", "hush2")},
			"another Prism Central": {secret: nutanixSecret("pc2.example.com", "hush"), want: "Prism Central was pc.example.com and is now pc2.example.com"},
		}},
		"libvirt": {want: "libvirt qemu+tcp://192.168.122.1/system", others: map[string]other{
			"another host": {change: `{"uri": "qemu+tcp://192.168.122.2/system"}`, want: "libvirt was qemu+tcp://192.168.122.1/system and is now qemu+tcp://192.168.122.2/system"},
		}},
		"kubemark": {secret: kubernetesSecret("https://api:6443", "a"), want: "API server https://api:6443", others: map[string]other{
			"another token":   {secret: kubernetesSecret("https://api:6443/", "b")},
			"another cluster": {secret: kubernetesSecret("https://other:6443", "a"), want: "API server was https://api:6443 and is now https://other:6443"},
		}},
		"kubevirt": {secret: kubernetesSecret("https://api:6443", "a"), want: "API server https://api:6443, namespace demo", others: map[string]other{
			"another cluster": {secret: kubernetesSecret("https://other:6443", "a"), want: "API server was https://api:6443 and is now https://other:6443"},
		}},
	}
	each(t, func(t *testing.T, m kept) {
		tc, known := cases[m.Name()]
		if !known {
			t.Fatal("the place of its example is not tested")
		}
		made := placeOf(t, m, tc.secret, "")
		if made.String() != tc.want || !made.Equal(placeOf(t, m, tc.secret, "")) {
			t.Errorf("the place is %q, want %q", made, tc.want)
		}
		for name, other := range tc.others {
			t.Run(name, func(t *testing.T) {
				now := placeOf(t, m, other.secret, other.change)
				if got := made.Diff(now); got != other.want || strings.Contains(got+now.String(), "hush") {
					t.Errorf("the difference is %q, want %q", got, other.want)
				}
				if want := other.want != "" && !strings.Contains(other.want, "unknown"); made.Contradicts(now) != want {
					t.Errorf("they contradict: %t, want %t", !want, want)
				}
			})
		}
	})
}

func placeOf(t *testing.T, m kept, secret map[string]string, change string) module.Place {
	t.Helper()
	machine := exampleWith(t, m, change)
	machine.Name, machine.Namespace, machine.UID = "demo-1", "openshift-machine-api", "0c9a1f3e-9e0b-4a53-8ae1-6d6d9d6c1c11"
	credentials := map[string][]byte{}
	for key, value := range secret {
		credentials[key] = []byte(value)
	}
	inputs, err := render.Render(render.Input{Machine: machine, ClusterID: "demo", Module: m.Module, Credentials: credentials, UserData: []byte(`{"ignition": {"version": "3.4.0"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	place, err := module.PlaceOf(m.Module, inputs.Variables, credentials, inputs.Environment)
	if err != nil {
		t.Fatal(err)
	}
	return place
}
