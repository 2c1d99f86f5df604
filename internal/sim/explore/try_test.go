package explore

import ("testing";"os";"strconv";"time")

func TestTry(t *testing.T) {
	d,_ := strconv.Atoi(os.Getenv("D")); k,_ := strconv.Atoi(os.Getenv("K"))
	for _, s := range Scenarios(d, int8(k)) {
		if n := os.Getenv("S"); n != "" && n != s.Name() { continue }
		r, err := Explore(t.Context(), s, Options{})
		if err != nil { t.Fatal(err) }
		t.Logf("%v %v %.0f/s", r, r.Elapsed.Round(time.Millisecond), float64(r.States)/r.Elapsed.Seconds())
		if v := r.Violated; v != nil { for _, p := range v.Path { t.Log(p) }; t.Log(v, v.Replay) }
	}
}
