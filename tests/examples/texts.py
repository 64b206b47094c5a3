"""Texts of very different lengths, one word to more than the model takes, and a query that one of them answers."""

from __future__ import annotations

QUERY = "a chair that is kind to the back"

#: The text that answers the query.
BEST = "An office chair with an adjustable backrest that supports the lower spine during long working days."

#: One per paragraph.
_PARAGRAPHS = """
Bread

Night trains

How to prune roses

A map of the harbour, 1887

Rust on old bicycles, and what to do about it.

The ferry leaves at six; the last one back is at ten.

A pocket guide to the mosses of northern forests, with a key to forty species.

An office chair with an adjustable backrest that supports the lower spine during long working days.

The committee met twice in March and could not agree on the colour of the benches, so they stay unpainted.

Wash the lentils, cover them with cold water, add a bay leaf and half an onion, and let them simmer until they are
soft but still whole.

Tide tables list, for each day, the times and heights of high and low water at a port. Between the listed times the
height follows a curve that sailors used to estimate with the rule of twelfths.

Our cat sleeps in the sink.

Zwei Zeilen auf Deutsch: Der Zug hält heute nicht in Altenburg. Bitte steigen Sie in Gera um.

Les abricots sont mûrs.

東京の朝は早い。

def area(r): return 3.141592653589793 * r ** 2

!!! ??? ... --- ***

Violins are held together by hide glue, which lets go when it is warmed and wetted. That is a virtue: a luthier can
open the instrument along its seams, mend a crack or fit a new bass bar, and close it again without harm.

The village had one telephone, in the bakery. When it rang, whoever was nearest answered, wrote the message on a paper
bag, and gave it to the next customer who lived in the right direction. Messages arrived with flour on them, sometimes
late, and nobody remembers that one was ever lost.

To read a barometer, tap the glass lightly and watch which way the needle moves. What matters is less the pressure
itself than its change over the last hours: a quick fall announces wind, a slow one a long spell of rain, and a steady
rise settled weather. Correct for altitude before comparing two instruments, because pressure drops by about one
hectopascal for every eight metres climbed near the sea.

A lock gate is a simple machine. Two leaves meet at an angle that points upstream, so that the water itself presses
them shut, and the higher the water stands, the tighter they close. To open them the chamber must first be brought to
the level outside. Small sluices in the gates, or culverts in the walls, let the water through; when both levels are
equal the pressure is gone, and one person leaning on the balance beam can swing a leaf of several tonnes. Boats going
up wait for the chamber to fill, boats going down for it to empty. On a busy canal the keeper tries to let them pass
in turns, one up and one down, which halves the water spent.

Before there were clocks on every wall, a town kept time by its bells. The sexton rang in the morning for work to
begin, at noon for soup, and in the evening for the gates to close, and he took the hour from a sundial on the south
face of the tower, or from his own habit when the sky was grey. Two towns a day's walk apart could differ by ten
minutes and never notice. The railway ended that. A train that leaves at eight by one bell and arrives at nine by
another cannot be put into a timetable, and two trains on a single track that disagree about the hour may meet. So the
companies carried their own time along the line, first with a watch handed from guard to guard, then by telegraph, and
for some decades the station clock had a second minute hand, one for the railway and one for the town. People grumbled
that the sun had been abolished. In the end the second hand was taken off, and it was the sun that had to give way.

The orchard behind the school was planted by a teacher who wanted each class to leave a tree. There are now sixty-one
of them, apples mostly, a few pears, two quinces, and one medlar that nobody will admit to. In the first years the
children dig the hole too deep and the graft ends up below the ground, so the oldest rows are of all heights. Later
rows are even, because by then the caretaker dug the holes the evening before. Every tree has a slate with a year on
it, and people who left long ago come back in September to look for theirs. They are surprised by how small it is, or
how large; they take a photograph, then an apple, and usually find it sour. What to do with the harvest is decided
anew each autumn. Once it was cider, which the parents enjoyed more than the ministry did. Once it was given to the
zoo, whose bears were said to prefer honey. In most years it becomes juice: a press on a trailer arrives on a
Saturday, the whole village carries baskets, and the bottles are sold at the gate to pay for the trip of the leaving
class. The medlar is left alone until after the first frost, when somebody, never the same person twice, picks every
last fruit in the night and puts a jar of jelly on the steps. The teacher, who is ninety, says that she has no idea
who it might be, and that it needs a little more lemon.

Tickets, please.
"""

TEXTS = [" ".join(paragraph.split()) for paragraph in _PARAGRAPHS.strip().split("\n\n")]
