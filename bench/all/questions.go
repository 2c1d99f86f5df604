package main

// A question is a program in a directory of this one's parent.
type question struct {
	name    string
	module  bool     // it is a module of its own
	seconds int      // that it takes, roughly: for the bar
	quick   int      // that it takes with -quick; 0 if it has no part in that
	args    []string // for what goes to the page
}

// questions are asked in this order. Together they must stay well below 45
// minutes, and with -quick below 3, building not counted.
func questions() []question {
	return []question{
		{name: "routing", module: true, seconds: 200, quick: 20},
		{name: "ownership", seconds: 60, quick: 15},
		{name: "scale", seconds: 640, quick: 40},
		{name: "propagation", seconds: 300, quick: 15},
		{name: "availability", seconds: 240, quick: 35},
		{name: "grants", seconds: 160, quick: 25},
		{name: "balance", seconds: 120, quick: 8},
		{name: "flease", seconds: 420, quick: 40, args: []string{"-rounds", "3"}},
		{name: "rival", seconds: 5},
		{name: "guard", seconds: 15},
	}
}

func names(all []question) []string {
	var names []string
	for _, q := range all {
		names = append(names, q.name)
	}
	return names
}
