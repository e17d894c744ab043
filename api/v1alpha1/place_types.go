package v1alpha1

// PlacePart is one part of an instance's place: account, project, region, vCenter, API endpoint. Exactly one of field,
// machine, credential, environment and awsAccountOf is its source. Values are shown and stored. They must not change
// when credentials are renewed, so passwords and tokens are no parts.
type PlacePart struct {
	// name is shown to people: letters, digits, spaces and dashes. Unique in the list.
	Name string `json:"name"`
	// field is a string, number or bool field of the providerSpec, read after defaults.
	Field string `json:"field,omitempty"`
	// machine is a field of the variable machine: name, namespace or cluster_id.
	Machine string `json:"machine,omitempty"`
	// credential is a value in the credentials Secret.
	Credential *PlaceCredential `json:"credential,omitempty"`
	// environment is one of the variables in spec.environment.
	Environment string `json:"environment,omitempty"`
	// awsAccountOf lists keys of the credentials Secret. The first that exists gives the AWS account, from an access
	// key ID or an SDK configuration file, whose role wins.
	AWSAccountOf []string `json:"awsAccountOf,omitempty"`
	// optional allows a part without a value, which is then unknown.
	Optional bool `json:"optional,omitempty"`
	// secret shows and stores a hash instead of the value.
	Secret bool `json:"secret,omitempty"`
}

// PlaceCredential is a value in the credentials Secret.
type PlaceCredential struct {
	// key is one of spec.credentials.keys, written as there.
	Key string `json:"key"`
	// path leads to a text, number or bool in the key's YAML or JSON. {cloudName} stands for that string field of the
	// providerSpec. Defaults to the key's whole text.
	Path []string `json:"path,omitempty"`
}

// moduleErrors classifies errors of the engine.
type moduleErrors struct {
	// final lists RE2 expressions for errors (summary and detail) that no retry can fix.
	Final []string `json:"final,omitempty"`
	// nothingMade lists RE2 expressions for errors after which the instance certainly does not exist: its create
	// request was refused or never sent. Other errors lead to a lookup. final implies it.
	NothingMade []string `json:"nothingMade,omitempty"`
	// hints add advice to errors. The first match wins.
	Hints []ErrorHint `json:"hints,omitempty"`
}

// ErrorHint is advice for an error.
type ErrorHint struct {
	// matches is an RE2 expression for the error, its summary and detail.
	Matches string `json:"matches"`
	// hint is one line of advice: "EC2 has no image with the ID in ami.id; correct it".
	Hint string `json:"hint"`
}
