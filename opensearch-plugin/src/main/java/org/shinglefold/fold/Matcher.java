package org.shinglefold.fold;

import java.util.Set;

/**
 * Decides which hits of one request match.
 *
 * <p>Two hits match when their digests are equal. They also match when both have a signature and similar
 * lengths, share {@code minShared} supershingles and agree in at least {@code need} of their values. In both
 * cases all scopes must be equal, and their facts must not differ.
 */
public final class Matcher {
    private final int values, bits, need, minShared;
    private final double minLengthRatio;
    private final long lowest;
    private final double[] spans;

    public Matcher(Scheme scheme, FoldOptions options) {
        double least = options.minResemblance() == null ? scheme.minResemblance() : options.minResemblance();
        int usual = least > 0 ? 0 : scheme.minShared();
        minShared = options.minShared() == null ? usual : options.minShared();
        if (least <= 0 && minShared < 1) {
            throw new IllegalArgumentException(
                "min_resemblance 0 and min_shared 0 would fold everything: raise one of them"
            );
        }
        Double ratio = options.minLengthRatio();
        minLengthRatio = ratio == null ? scheme.minLengthRatio() : ratio;
        values = scheme.values();
        bits = scheme.bits();
        need = scheme.agreementFor(least);
        lowest = lowestBits(bits);
        spans = options.scopes().stream().mapToDouble(FoldOptions.Scope::span).toArray();
    }

    /** Returns whether supershingles decide, too. */
    public boolean needsSupershingles() {
        return minShared > 0;
    }

    /** Returns whether two hits match. */
    public boolean match(Candidate one, Candidate other) {
        Fingerprint a = one.fingerprint(), b = other.fingerprint();
        boolean equal = !a.digest().isEmpty() && a.digest().equals(b.digest());
        if (!equal && !near(a, b)) {
            return false;
        }
        if (!a.facts().isEmpty() && !b.facts().isEmpty() && !a.facts().equals(b.facts())) {
            return false;
        }
        return withinScopes(one, other);
    }

    /** Returns in how many values two signatures agree; only exact up to what matching pairs may differ in. */
    public int agreeing(long[] a, long[] b, int mostDiffering) {
        int differing = 0;
        for (int at = 0; at < a.length && differing <= mostDiffering; at++) {
            long word = a[at] ^ b[at];
            for (int shift = bits / 2; shift > 0; shift /= 2) {
                word |= word >>> shift;
            }
            differing += Long.bitCount(word & lowest);
        }
        return values - differing;
    }

    private boolean near(Fingerprint a, Fingerprint b) {
        if (a.signature() == null || b.signature() == null) {
            return false;
        }
        // First what parts most hits.
        if (need > 0 && agreeing(a.signature(), b.signature(), values - need) < need) {
            return false;
        }
        if (minLengthRatio > 0 && lengthRatio(a.shingles(), b.shingles()) < minLengthRatio) {
            return false;
        }
        return minShared == 0 || shared(a.supershingles(), b.supershingles()) >= minShared;
    }

    private boolean withinScopes(Candidate one, Candidate other) {
        for (int at = 0; at < spans.length; at++) {
            // NaN stands for no value and compares false.
            if (!(Math.abs(one.scopes()[at] - other.scopes()[at]) <= spans[at])) {
                return false;
            }
        }
        return true;
    }

    private static double lengthRatio(double a, double b) {
        return a + b > 0 ? 2.0 * Math.min(a, b) / (a + b) : 1.0;
    }

    private static int shared(Set<String> one, Set<String> other) {
        return (int) one.stream().filter(other::contains).count();
    }

    private static long lowestBits(int bits) {
        long mask = 0;
        for (int at = 0; at < Long.SIZE; at += bits) {
            mask |= 1L << at;
        }
        return mask;
    }
}
