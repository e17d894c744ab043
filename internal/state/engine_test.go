package state_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/backend"
)

const rootModule = `
variable "size" {
  type = number
}
resource "terraform_data" "this" {
  input = "instance-1"
}
output "instance_id" {
  value = terraform_data.this.output
}
output "noise" {
  value     = join("", [for i in range(var.size) : sha256(tostring(i))])
  sensitive = true
}
`

// engineBinary finds an engine: TOFU, the one built in this repository, or tofu on PATH.
func engineBinary() string {
	built := filepath.Join("..", "..", "bin", "tofu")
	for _, candidate := range []string{os.Getenv("TOFU"), built, "tofu"} {
		if found, err := exec.LookPath(candidate); candidate != "" && err == nil {
			absolute, err := filepath.Abs(found)
			Expect(err).NotTo(HaveOccurred())
			return absolute
		}
	}
	Skip("no engine: set TOFU, or build bin/tofu")
	return ""
}

var _ = Describe("A real engine", func() {
	It("keeps its state here, and reads it back with its own kubernetes backend", func(ctx SpecContext) {
		binary, folder := engineBinary(), GinkgoT().TempDir()
		write := func(name, content string) {
			GinkgoHelper()
			Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
		}
		var env []string
		engine := func(ctx context.Context, arguments ...string) string {
			GinkgoHelper()
			command := exec.CommandContext(ctx, binary, arguments...)
			command.Dir, command.Env = folder, append([]string{"HOME=" + folder, "TF_IN_AUTOMATION=1"}, env...)
			output, err := command.Output()
			Expect(err).NotTo(HaveOccurred(), "%s: %s", arguments[0], output)
			return string(output)
		}

		backend := backend.New(backend.Options{})
		Expect(backend.Start(ctx)).To(Succeed())
		DeferCleanup(backend.Close)
		store, key := state.New(live, state.Options{}), newKey()
		session := acquire(ctx, store, key, run("r1"))
		endpoint, err := backend.Open(session)
		Expect(err).NotTo(HaveOccurred())
		write("main.tf", rootModule)
		write("backend.tf", `terraform { 
  backend "http" {} 
}`)
		env = []string{
			"TF_HTTP_ADDRESS=" + endpoint.Address, "TF_HTTP_LOCK_ADDRESS=" + endpoint.LockAddress,
			"TF_HTTP_UNLOCK_ADDRESS=" +
				endpoint.UnlockAddress,
			"TF_HTTP_USERNAME=" + endpoint.Username, "TF_HTTP_PASSWORD=" + endpoint.Password,
		}
		engine(ctx, "init", "-no-color", "-input=false")
		engine(ctx, "apply", "-no-color", "-input=false", "-auto-approve", "-var=size=1000")

		seen, err := store.Get(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		parsed, err := seen.State()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(parsed.Outputs["instance_id"].Value)).To(Equal(`"instance-1"`))
		Expect(parsed.Outputs["noise"].Sensitive).To(BeTrue())
		Expect(parsed.Managed()).To(HaveLen(1))
		Expect(parsed.Managed()[0].Address()).To(Equal("terraform_data.this"))
		Expect(store.List(ctx, namespace)).To(ContainElement(HaveField("Managed", 1)))

		user, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, err := user.KubeConfig()
		Expect(err).NotTo(HaveOccurred())
		write("kubeconfig", string(kubeconfig))
		write("backend.tf", `terraform {
  backend "kubernetes" {
    secret_suffix = "`+key.Suffix()+`"
    namespace     = "`+key.Namespace+`"
    config_path   = "kubeconfig"
  }
}`)
		engine(ctx, "init", "-no-color", "-input=false", "-reconfigure")
		Expect(engine(ctx, "state", "pull")).To(MatchJSON(seen.Raw))
		Expect(engine(ctx, "state", "list")).To(Equal("terraform_data.this\n"))

		write("backend.tf", `terraform { 
  backend "http" {} 
}`)
		engine(ctx, "init", "-no-color", "-input=false", "-reconfigure")
		engine(ctx, "destroy", "-no-color", "-input=false", "-auto-approve", "-var=size=1")
		Expect(session.Delete(ctx)).To(Succeed())
		Expect(secretsOf(ctx, key, "")).To(BeEmpty())
	})
	It("encrypts with its own kubernetes backend what is read here, and reads what is encrypted here",
		func(ctx SpecContext) {
			binary, folder := engineBinary(), GinkgoT().TempDir()
			key, store := newKey(), state.New(live, state.Options{Keys: keysOf("k")})
			user, err := environment.AddUser(envtest.User{Name: "encrypting", Groups: []string{"system:masters"}}, nil)
			Expect(err).NotTo(HaveOccurred())
			kubeconfig, err := user.KubeConfig()
			Expect(err).NotTo(HaveOccurred())
			for name, content := range map[string]string{"kubeconfig": string(kubeconfig), "main.tf": rootModule,
				"backend.tf": `terraform {
  encryption {
    key_provider "pbkdf2" "machine_iac" {
      passphrase = "` + strings.Repeat("k", 40) + `"
    }
    method "aes_gcm" "this" {
      keys = key_provider.pbkdf2.machine_iac
    }
    state {
      method = method.aes_gcm.this
    }
  }
  backend "kubernetes" {
    secret_suffix = "` + key.Suffix() + `"
    namespace     = "` + key.Namespace + `"
    config_path   = "kubeconfig"
  }
}`} {
				Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
			}
			engine := func(arguments ...string) string {
				GinkgoHelper()
				command := exec.CommandContext(ctx, binary, arguments...)
				command.Dir, command.Env = folder, []string{"HOME=" + folder, "TF_IN_AUTOMATION=1"}
				output, err := command.Output()
				Expect(err).NotTo(HaveOccurred(), "%s: %s", arguments[0], output)
				return string(output)
			}
			engine("init", "-no-color", "-input=false")
			engine("apply", "-no-color", "-input=false", "-auto-approve", "-var=size=10")
			seen, err := store.Get(ctx, key)
			Expect(err).NotTo(HaveOccurred())
			Expect(store.Outdated(ctx, key)).To(BeFalse())
			_, err = state.New(live, state.Options{}).Get(ctx, key)
			Expect(err).To(as[*state.EncryptedError](HaveField("Key", key)))

			session := acquire(ctx, store, key, run("r1"))
			next := bytes.ReplaceAll(seen.Raw, []byte("instance-1"), []byte("instance-2"))
			restored, err := session.Restore(ctx, next)
			Expect(err).NotTo(HaveOccurred())
			Expect(restored).To(Equal(seen.Serial + 1))
			Expect(session.Release(ctx, nil)).To(Succeed())
			Expect(engine("state", "pull")).To(ContainSubstring("instance-2"))
			engine("destroy", "-no-color", "-input=false", "-auto-approve", "-var=size=1")
			Expect(store.Get(ctx, key)).To(HaveField("Serial", BeNumerically(">", restored)))
		})
})
