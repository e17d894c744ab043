//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// keysSecret contains the encryption keys of Pulumi checkpoints.
const keysSecret = "machine-iac-pulumi-keys"

func (w *world) asOperator(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, w.lab.Path("bin", "kubectl"),
		append([]string{"--kubeconfig", w.lab.OperatorKubeconfig()}, arguments...)...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, problems.String())
	}
	return out.String(), nil
}

// logLines returns the manager's log lines with a word, in any case, except those from when the API server was away:
// while it starts, it rejects every request until it has read its RBAC rules.
func (w *world) logLines(word string) []string {
	GinkgoHelper()
	content, err := os.ReadFile(w.pod.log())
	Expect(err).NotTo(HaveOccurred())
	var found []string
	at := int64(0)
	for line := range strings.Lines(string(content)) {
		if strings.Contains(strings.ToLower(line), word) && !w.wasAway(at) {
			found = append(found, line)
		}
		at += int64(len(line))
	}
	return found
}

func (w *world) wasAway(at int64) bool {
	for _, section := range w.away {
		if section.from <= at && at < section.to {
			return true
		}
	}
	return false
}

// secretsShown returns where the fixtures' secrets appear outside of Secrets: in the manager's log, events, Machines,
// Nodes, and files of the work folder.
func (w *world) secretsShown(ctx context.Context) ([]string, error) {
	secrets, err := w.secrets(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	look := func(where string, content []byte) {
		for name, secret := range secrets {
			if bytes.Contains(content, secret) {
				found = append(found, fmt.Sprintf("%s shows %s", where, name))
			}
		}
	}
	log, err := os.ReadFile(w.pod.log())
	if err != nil {
		return nil, err
	}
	look("the manager's log", log)
	for _, kind := range []string{"events", "machines", "machinesets", "nodes", "configmaps"} {
		out, err := w.lab.Kubectl(ctx, "get", kind, "--all-namespaces", "-o", "json")
		if err != nil {
			return nil, err
		}
		look(kind, []byte(out))
	}
	files := 0
	err = filepath.WalkDir(w.pod.workDir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		look(path, content)
		files++
		return err
	})
	if files == 0 {
		err = errors.Join(err, errors.New("the work folder has no files: it is not the manager's"))
	}
	return found, err
}

// secrets returns all confidential values by description.
func (w *world) secrets(ctx context.Context) (map[string][]byte, error) {
	own := &corev1.Secret{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: credentials}, own); err != nil {
		return nil, err
	}
	operator, err := clientcmd.LoadFromFile(w.lab.OperatorKubeconfig())
	if err != nil {
		return nil, err
	}
	secrets := map[string][]byte{"the token of the credentials": own.Data["token"], "the user data": []byte(w.userData)}
	for _, user := range operator.AuthInfos {
		secrets["the operator's token"] = []byte(user.Token)
	}
	keys := &corev1.Secret{} // missing before the first Machine of a stack
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: keysSecret},
		keys); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	for name, value := range keys.Data {
		if strings.HasSuffix(name, ".passphrase") {
			secrets["the key of checkpoints "+name] = value
		}
	}
	for name, secret := range secrets {
		if len(secret) < 16 {
			return nil, fmt.Errorf("%s is too short to be found: %d bytes", name, len(secret))
		}
	}
	return secrets, nil
}
