package org.shinglefold.fold;

import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The stored fingerprint of a hit.
 *
 * @param state whether it can be compared
 * @param signature the packed signature in words; null without one
 * @param shingles the number of shingles; −1 without a signature
 * @param language empty without a fingerprint of the scheme
 * @param digest equal for equal texts; empty if there is none. Those of other schemes begin with their id
 * @param facts equal for equal facts; empty if there are none
 * @param supershingles those stored; empty without a signature
 */
public record Fingerprint(
    State state,
    long[] signature,
    long shingles,
    String language,
    String digest,
    String facts,
    Set<String> supershingles
) {
    /** How a hit is counted. */
    public enum State { READ, UNSIGNED, UNREADABLE, OTHER_SCHEME }

    private static final int LONGEST_DIGEST = 300, LONGEST_SIGNATURE = 22_000;
    private static final int DIGEST_PARTS = 5;
    private static final long MOST_SHINGLES = 1L << 50;
    private static final String FACTS_MARK = "~", UNDETERMINED = "und";
    private static final Fingerprint NONE = without(State.UNSIGNED), DAMAGED = without(State.UNREADABLE);

    /**
     * Reads the fingerprint of a hit; a damaged one counts as none.
     *
     * @param needsSupershingles whether supershingles are read, which hits may have anyway
     */
    public static Fingerprint of(Row row, Scheme scheme, boolean needsSupershingles) {
        List<Object> digests = row.values(scheme.field() + ".digest");
        List<Object> signatures = row.values(scheme.field() + ".signature");
        List<Object> words = needsSupershingles ? row.values(scheme.field() + ".supershingles") : List.of();
        if (digests.isEmpty() && signatures.isEmpty() && words.isEmpty()) {
            return NONE;
        }
        try {
            return read(one(digests), one(signatures), words, scheme);
        } catch (IllegalArgumentException | ClassCastException damaged) {
            return DAMAGED;
        }
    }

    /** Returns the scheme of a fingerprint of another scheme. */
    public String otherScheme() {
        return language;
    }

    private static Fingerprint read(String stored, String base64, List<Object> words, Scheme scheme) {
        Set<String> supershingles = checked(words, scheme);
        Head head = Head.of(stored);
        if (head.scheme.isEmpty() || base64.length() > LONGEST_SIGNATURE || !head.seal.isEmpty()) {
            return DAMAGED;
        }
        byte[] signature = Base64.getDecoder().decode(base64);
        if (!head.scheme.equals(scheme.id())) {
            String digest = head.digest.isEmpty() ? "" : head.scheme + "\0" + head.digest;
            return new Fingerprint(State.OTHER_SCHEME, null, -1, head.scheme, digest, "", Set.of());
        }
        int mark = head.digest.indexOf(FACTS_MARK);
        String text = mark < 0 ? head.digest : head.digest.substring(0, mark);
        String facts = mark < 0 ? "" : head.digest.substring(mark + 1);
        if (signature.length == 0) {
            return new Fingerprint(State.UNSIGNED, null, -1, head.language, text, facts, Set.of());
        }
        if (signature.length != scheme.signatureSize() || head.shingles > MOST_SHINGLES) {
            return DAMAGED;
        }
        return new Fingerprint(
            State.READ, words(signature), head.shingles, head.language, text, facts, supershingles
        );
    }

    private static Set<String> checked(List<Object> words, Scheme scheme) {
        if (words.size() > scheme.groups()) {
            throw new IllegalArgumentException("too many supershingles");
        }
        Set<String> found = new HashSet<>();
        for (Object word : words) {
            if (!(word instanceof String text) || length(text) > LONGEST_DIGEST) {
                throw new IllegalArgumentException("no supershingle");
            }
            found.add(text);
        }
        return found;
    }

    private static String one(List<Object> values) {
        if (values.size() > 1) {
            throw new IllegalArgumentException("several values");
        }
        return values.isEmpty() ? "" : (String) values.get(0);
    }

    private static long[] words(byte[] signature) {
        byte[] padded = Arrays.copyOf(signature, (signature.length + 7) / 8 * 8);
        long[] words = new long[padded.length / 8];
        java.nio.ByteBuffer.wrap(padded).order(java.nio.ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words);
        return words;
    }

    /** Returns the length as Python counts it. */
    private static int length(String text) {
        return text.codePointCount(0, text.length());
    }

    private static Fingerprint without(State state) {
        return new Fingerprint(state, null, -1, "", "", "", Set.of());
    }

    /** The parts of a stored digest, {@code scheme.language.shingles.digest}, and a seal if there is one. */
    private record Head(String scheme, String language, long shingles, String digest, String seal) {
        static Head of(String stored) {
            if (length(stored) > LONGEST_DIGEST) {
                throw new IllegalArgumentException("a long digest");
            }
            if (dots(stored) == DIGEST_PARTS - 1) {
                String[] parts = stored.split("\\.", -1);
                if (!parts[0].isEmpty() && isNumber(parts[2])) {
                    return new Head(parts[0], parts[1], Long.parseLong(parts[2]), parts[3], parts[4]);
                }
            }
            int first = stored.indexOf('.'), last = stored.lastIndexOf('.');
            int before = last > first ? stored.lastIndexOf('.', last - 1) : -1;
            if (first > 0 && before > first + 1 && isNumber(stored.substring(before + 1, last))) {
                long shingles = Long.parseLong(stored.substring(before + 1, last));
                return new Head(
                    stored.substring(0, first), stored.substring(first + 1, before), shingles,
                    stored.substring(last + 1), ""
                );
            }
            return new Head("", UNDETERMINED, 0, stored, "");
        }

        private static boolean isNumber(String text) {
            for (int at = 0; at < text.length(); at++) {
                if (!Character.isDigit(text.charAt(at))) {
                    return false;
                }
            }
            return !text.isEmpty();
        }

        private static int dots(String text) {
            int count = 0;
            for (int at = text.indexOf('.'); at >= 0; at = text.indexOf('.', at + 1)) {
                count++;
            }
            return count;
        }
    }
}
