package partition_test
import ("testing";"math/rand/v2";"fmt";"github.com/leasehold-dev/leasehold";"github.com/leasehold-dev/leasehold/partition")
func TestDrift(t *testing.T){
 for _, seed := range []uint64{1,2,3} {
 tr := newTrial(t, zipf(0.8,1e9), partition.Balanced{}, 100)
 tr.random = rand.New(rand.NewPCG(seed,9))
 worst, maxr := 0.0, 0
 for i := range 240 {
   if i%6 == 0 { // places change
     w := workload{rest: tr.rest}
     for j,h := range tr.keys { if (j+i)%40<2 { h.Key = leasehold.Key(tr.random.Uint64()) }; w.keys = append(w.keys,h) }
     tr.workload = w.with(0,0); tr.keys = tr.keys[:]
     tr.seen = tr.survey(tr.current, cellsPerRange)
   }
   tr.decide(t)
   if i%6==5 { worst=max(worst,tr.maxOverMean(tr.members,tr.current)) }
   maxr=max(maxr,len(tr.current))
 }
 fmt.Println(seed,"worst",worst,"moved/min",tr.moved/40,"ranges",len(tr.current),maxr)
 }
}
