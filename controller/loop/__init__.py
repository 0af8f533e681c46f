"""One pass: observe, judge, plan, act, report; the ports it needs, and its pace."""
