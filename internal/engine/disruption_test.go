package engine

import "testing"

func TestDisruption(t *testing.T) {
	effects := Effects{
		"aws_instance": {"instance_type": "stops and starts the instance", "user_data": "stops and starts the instance", "tenancy": "moves the instance"},
		"disk":         {"size": "detaches the disk"},
	}
	plan := func(changes ...Change) *Report { return &Report{Changes: changes} }
	change := func(typ string, action Action) Change {
		return Change{Address: typ + ".this", Type: typ, Action: action}
	}
	for name, tc := range map[string]struct {
		report  *Report
		changed map[string][]string
		may     bool
		want    string
	}{
		"nothing changes":   {report: plan(change("aws_instance", ActionNoOp))},
		"another type":      {report: plan(change("aws_ec2_tag", ActionUpdate)), changed: map[string][]string{"aws_ec2_tag.this": {"user_data"}}},
		"a create":          {report: plan(change("aws_instance", ActionCreate)), changed: map[string][]string{"aws_instance.this": {"user_data"}}},
		"what is harmless":  {report: plan(change("aws_instance", ActionUpdate)), changed: map[string][]string{"aws_instance.this": {"tags", "size"}}, may: true},
		"what is not known": {report: plan(change("aws_instance", ActionUpdate)), may: true},
		"what stops it": {
			report: plan(change("aws_instance", ActionUpdate)), changed: map[string][]string{"aws_instance.this": {"instance_type", "tags", "user_data"}}, may: true,
			want: "aws_instance.this would change in instance_type, user_data, which stops and starts the instance",
		},
		"all of it, each with its effect": {
			report:  plan(change("aws_instance", ActionUpdate), change("disk", ActionUpdate)),
			changed: map[string][]string{"aws_instance.this": {"tenancy", "user_data"}, "disk.this": {"size"}}, may: true,
			want: "aws_instance.this would change in tenancy, which moves the instance; aws_instance.this would change in user_data, which stops and starts the instance; " +
				"disk.this would change in size, which detaches the disk",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.report.MayDisrupt(effects); got != tc.may {
				t.Errorf("MayDisrupt is %t, want %t", got, tc.may)
			}
			if got := tc.report.Disruption(effects, tc.changed); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
