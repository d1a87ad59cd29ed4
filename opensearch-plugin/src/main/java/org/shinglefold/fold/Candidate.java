package org.shinglefold.fold;

/**
 * A hit as folding sees it.
 *
 * @param place its position among the hits read
 * @param row its doc values
 * @param fingerprint its fingerprint
 * @param digest a number that equal digests share; −1 without one
 * @param scopes a number for each scope, a code or seconds; NaN if the hit has no value
 */
public record Candidate(int place, Row row, Fingerprint fingerprint, int digest, double[] scopes) {}
