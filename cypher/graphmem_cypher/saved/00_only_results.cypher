// 00 Setting: draw only what a query returns
// Browser adds every relationship between the nodes of a result, so facts that ended show up among those that hold.
// This turns it off until `:config autoComplete: true` (Browser settings, "Connect result nodes").
:config autoComplete: false
