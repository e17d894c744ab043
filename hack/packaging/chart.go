package main

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
)

const (
	chartFolder = "install/helm"
	single      = "install/kubernetes"
)

// Placeholders in an object's fields that become template actions, since a template is not valid YAML.
const (
	with  = "@with "  // a field that exists if a value is set, and contains it
	items = "@items " // elements that are appended to a list
	merge = "@merge " // fields of a value that are added to others
)

var (
	withLine  = regexp.MustCompile(`(?m)^( *)(\w+): '@with (\S+)'$`)
	itemsLine = regexp.MustCompile(`(?m)^( *)- '@items (\S+)'$`)
	mergeLine = regexp.MustCompile(`(?m)^( *)'@merge (\S+)': ""$`)
)

// chart adds the chart's templates: install/kubernetes, with values for what users change.
func chart(from source, all files) error {
	made := map[string][]object{}
	for _, one := range from.kinds("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
		"RoleBinding", "Service") {
		replace(one.Object, namespace, "{{ .Release.Namespace }}")
		name := strings.ToLower(one.GetKind()) + ".yaml"
		made[name] = append(made[name], one)
	}
	deployment, err := chartDeployment(from)
	if err != nil {
		return err
	}
	made["deployment.yaml"] = []object{deployment}
	count := 1
	for name, objects := range made {
		content, err := documents(single, objects...)
		if err != nil {
			return err
		}
		all[path.Join(chartFolder, "templates", name)] = template(content)
		count += len(objects)
	}
	crds := from.kinds("CustomResourceDefinition")
	for _, one := range crds {
		at(one.Object, "metadata", "annotations")["helm.sh/resource-policy"] = "keep"
		content, err := documents("", one)
		if err != nil {
			return err
		}
		if bytes.Contains(content, []byte("{{")) {
			return fmt.Errorf("the CRD %s has {{ in a text, which Helm takes for a template; quote it in "+
				"hack/packaging", one.GetName())
		}
		plural, _, _ := strings.Cut(one.GetName(), ".")
		text := fmt.Sprintf(header, single) + "{{- if .Values.crds.install }}\n" + string(content) + "{{- end }}\n"
		all[path.Join(chartFolder, "templates", "crds", plural+".yaml")] = []byte(text)
	}
	if count--; count+len(crds) != len(from.objects) {
		return fmt.Errorf("install/kubernetes has %d objects, and the chart %d; add the missing kinds to "+
			"hack/packaging/chart.go", len(from.objects), count+len(crds))
	}
	return nil
}

func chartDeployment(from source) (object, error) {
	made, container, err := from.deployment()
	if err != nil {
		return nil, err
	}
	replace(made.Object, namespace, "{{ .Release.Namespace }}")
	container["image"] = `{{ include "machine-iac-operator.image" . }}`
	container["imagePullPolicy"] = with + ".Values.image.pullPolicy"
	container["resources"] = with + ".Values.resources"
	command, ok := container["command"].([]any)
	if !ok {
		return nil, fmt.Errorf("the container of the operator has no command; the chart adds .Values.extraArgs to it")
	}
	container["command"] = append(command, items+".Values.extraArgs")
	pod := at(made.Object, "spec", "template")
	metadata, spec := at(pod, "metadata"), at(pod, "spec")
	if metadata["annotations"] == nil {
		metadata["annotations"] = with + ".Values.podAnnotations"
	} else {
		at(metadata, "annotations")[merge+".Values.podAnnotations"] = ""
	}
	at(metadata, "labels")[merge+".Values.podLabels"] = ""
	spec["imagePullSecrets"] = with + ".Values.image.pullSecrets"
	for _, name := range []string{"priorityClassName", "nodeSelector", "tolerations", "affinity"} {
		spec[name] = with + ".Values." + name
	}
	return made, nil
}

// template replaces the placeholders by template actions.
func template(content []byte) []byte {
	content = withLine.ReplaceAllFunc(content, func(line []byte) []byte {
		parts := withLine.FindSubmatch(line)
		indent := string(parts[1])
		return fmt.Appendf(nil, "%[1]s{{- with %[3]s }}\n%[1]s%[2]s:\n%[1]s  {{- toYaml . | nindent %[4]d "+
			"}}\n%[1]s{{- end }}", indent, parts[2], parts[3], len(indent)+2)
	})
	for _, line := range []*regexp.Regexp{itemsLine, mergeLine} {
		content = line.ReplaceAllFunc(content, func(text []byte) []byte {
			parts := line.FindSubmatch(text)
			indent := string(parts[1])
			return fmt.Appendf(nil, "%[1]s{{- with %[2]s }}\n%[1]s{{- toYaml . | nindent %[3]d }}\n%[1]s{{- end }}",
				indent, parts[2], len(indent))
		})
	}
	return content
}
