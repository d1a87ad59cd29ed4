package org.shinglefold.fold;

/**
 * A hit as folding sees it.
 *
 * @param place its position among the hits read
 * @param row its doc values
 * @param fingerprint its fingerprint
 * @param scopes a number for each scope, a code or seconds; NaN if the hit has no value
 */
public record Candidate(int place, Row row, Fingerprint fingerprint, double[] scopes) {}
