package v1alpha1

// PlacePart is one part of the place that an instance is in: the account, the project, the region, the vCenter, the API endpoint. Exactly one
// of field, machine, credential, environment and awsAccountOf says where its value comes from. Values are shown to people and kept with the
// state. A part must stay the same when credentials are renewed in the same account, so a password or a token is none.
type PlacePart struct {
	// name names the part, for people: letters, digits, spaces and dashes. Unique in the list.
	Name string `json:"name"`
	// field is a field of the providerSpec, a string, number or bool, its parts joined by dots, read after defaults are filled in.
	Field string `json:"field,omitempty"`
	// machine is a field of the variable machine: name, namespace or cluster_id.
	Machine string `json:"machine,omitempty"`
	// credential is a value in the credentials Secret.
	Credential *PlaceCredential `json:"credential,omitempty"`
	// environment is one of the variables of spec.environment.
	Environment string `json:"environment,omitempty"`
	// awsAccountOf lists keys of the credentials Secret, of which the first that is there gives the account of AWS: from an access key's ID, or
	// from a configuration file of AWS's SDKs, whose role counts before its key. Where neither names an account, the part has no value.
	AWSAccountOf []string `json:"awsAccountOf,omitempty"`
	// optional says that the part may have no value, and then nothing is known of it. Defaults to false.
	Optional bool `json:"optional,omitempty"`
	// secret says that a hash of the value is shown and kept instead of the value. Defaults to false.
	Secret bool `json:"secret,omitempty"`
}

// PlaceCredential is a value in the credentials Secret.
type PlaceCredential struct {
	// key is one of spec.credentials.keys, written as it is there.
	Key string `json:"key"`
	// path leads to a text, number or bool in the key's YAML or JSON. {cloudName} in a step stands for that field of the providerSpec, a
	// string. When left out, the key's whole text is meant.
	Path []string `json:"path,omitempty"`
}

// moduleErrors says what errors of the engine mean.
type moduleErrors struct {
	// final lists regular expressions (RE2), any of which matches an error of the engine, its summary and its detail, after which no retry can help:
	// the providerSpec asks for what the infrastructure will never take. Every other error is retried. May be empty.
	Final []string `json:"final,omitempty"`
}
