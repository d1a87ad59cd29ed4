package org.shinglefold.fold;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Counts of the hits that were read. */
public final class Counts {
    private int hits, unsigned, unreadable;
    private final Map<String, Integer> otherSchemes = new TreeMap<>();
    private final Map<String, Integer> languages = new TreeMap<>();

    /** Counts a hit and returns how many were counted before it. */
    int count(Fingerprint fingerprint) {
        switch (fingerprint.state()) {
            case UNSIGNED -> unsigned++;
            case UNREADABLE -> unreadable++;
            case OTHER_SCHEME -> otherSchemes.merge(fingerprint.otherScheme(), 1, Integer::sum);
            default -> { }
        }
        boolean own = fingerprint.state() != Fingerprint.State.OTHER_SCHEME;
        if (own && !fingerprint.language().isEmpty()) {
            languages.merge(fingerprint.language(), 1, Integer::sum);
        }
        return hits++;
    }

    /** Returns the same in types that nodes send to each other. */
    List<Object> toValues() {
        return List.of(hits, unsigned, unreadable, otherSchemes, languages);
    }

    /** Returns the counts that {@link #toValues} describes. */
    @SuppressWarnings("unchecked")
    static Counts ofValues(List<Object> values) {
        Counts counts = new Counts();
        counts.hits = (int) values.get(0);
        counts.unsigned = (int) values.get(1);
        counts.unreadable = (int) values.get(2);
        counts.otherSchemes.putAll((Map<String, Integer>) values.get(3));
        counts.languages.putAll((Map<String, Integer>) values.get(4));
        return counts;
    }

    /** Returns how many hits were read. */
    public int hits() {
        return hits;
    }

    /** Returns how many have no fingerprint, or too little text for a signature. */
    public int unsigned() {
        return unsigned;
    }

    /** Returns how many have a damaged fingerprint. */
    public int unreadable() {
        return unreadable;
    }

    /** Returns how many are of another scheme, by its id. */
    public Map<String, Integer> otherSchemes() {
        return otherSchemes;
    }

    /** Returns how many hits of the scheme each language has. */
    public Map<String, Integer> languages() {
        return languages;
    }
}
