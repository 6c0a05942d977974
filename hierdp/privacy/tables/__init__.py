"""Exact noise from tables: inversion of the distribution function, with digits drawn as they are needed.

A uniform number U in [0, 1) gives the noise k with F(k − 1) ≤ U < F(k), where F is the noise's distribution
function. One random word is the first 64 bits of U. A table holds the first 64 bits of each F(k): its edges.
A word that is not an edge decides k at once. A word that is an edge is followed by more words, and these are
compared with more digits of F, until k is certain. So the law is exact: nothing is rounded or cut off.

`laws` has the distribution functions, enclosed rigorously; `sampler` the tables, the decision by more words,
and noise of several digits; `random_words` is the source of words. The theorems, and the test of each, are in
docs/noise.md (Knuth & Yao 1976).
"""

VERSION = 1
"""The sampler's version, for the record. It changes with the laws, the tables, or the map from words to
noise."""
