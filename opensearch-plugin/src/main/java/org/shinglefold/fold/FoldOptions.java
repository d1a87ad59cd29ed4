package org.shinglefold.fold;

import java.util.List;

/**
 * How to fold the hits of one search; null means what the scheme says.
 *
 * @param minResemblance hits match from this estimated resemblance on
 * @param minShared supershingles that hits must share as well
 * @param minLengthRatio the least ratio of lengths
 * @param policies which hit of a group to show, in order of weight
 * @param scopes fields whose values must be equal or near
 * @param members how many folded hits to attach
 * @param window hits read at first
 * @param maxWindow hits read at most
 * @param fold whether to fold at all
 */
public record FoldOptions(
    Double minResemblance,
    Integer minShared,
    Double minLengthRatio,
    List<Policy> policies,
    List<Scope> scopes,
    int members,
    int window,
    int maxWindow,
    boolean fold
) {
    /** A field whose value hits must share to fold; with a span, whose dates are at most so many seconds apart. */
    public record Scope(String field, Double within) {
        double span() {
            return within == null ? 0.0 : within;
        }
    }
}
