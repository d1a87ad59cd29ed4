package org.shinglefold.fold;

import java.util.Map;

/**
 * What decides on pairs of fingerprints of one scheme, as the recipe of an index has it.
 *
 * @param id the id of the scheme
 * @param field the object field of the fingerprints
 * @param values how many values a signature has
 * @param bits the bits of a value
 * @param groups how many supershingles a document has
 * @param minShared supershingles that a pair must share if no resemblance is required
 * @param minResemblance the least estimated resemblance
 * @param minLengthRatio the least 2·min(a, b)/(a + b) of the lengths in shingles
 * @param sealed the id of the key that fingerprints are sealed with; empty if they are not
 */
public record Scheme(
    String id,
    String field,
    int values,
    int bits,
    int groups,
    int minShared,
    double minResemblance,
    double minLengthRatio,
    String sealed
) {
    /** The field of recipes that name none: earlier versions left their default out. */
    private static final String EARLIER_FIELD = "dedup";

    /**
     * Reads the recipe of an index, the object {@code _meta.shinglefold} of its mapping.
     *
     * @throws IllegalArgumentException it is not a recipe
     */
    public static Scheme of(Map<String, Object> recipe) {
        try {
            Map<?, ?> sketch = (Map<?, ?>) recipe.get("sketch");
            Map<?, ?> decision = (Map<?, ?>) recipe.get("decision");
            return new Scheme(
                (String) recipe.get("id"),
                text(recipe.get("field"), EARLIER_FIELD),
                number(sketch, "values").intValue(),
                number(sketch, "bits").intValue(),
                number(sketch, "groups").intValue(),
                number(decision, "min_shared").intValue(),
                number(decision, "min_resemblance").doubleValue(),
                number(decision, "min_length_ratio").doubleValue(),
                text(recipe.get("sealed"), "")
            );
        } catch (ClassCastException | NullPointerException error) {
            throw new IllegalArgumentException("not a stored recipe: " + error.getMessage(), error);
        }
    }

    /** Returns the bytes of a signature. */
    public int signatureSize() {
        return (values * bits + 7) / 8;
    }

    /** Returns the estimated resemblance of two signatures that agree in so many values. */
    public double estimate(int agreeing) {
        double chance = Math.pow(2, -bits);
        double resemblance = ((double) agreeing / values - chance) / (1.0 - chance);
        return Math.min(1.0, Math.max(0.0, resemblance));
    }

    /** Returns the least number of agreeing values whose estimate reaches a resemblance. */
    public int agreementFor(double resemblance) {
        int agreeing = 0;
        while (agreeing <= values && estimate(agreeing) < resemblance) {
            agreeing++;
        }
        return agreeing;
    }

    private static Number number(Map<?, ?> part, String name) {
        return (Number) part.get(name);
    }

    private static String text(Object given, String otherwise) {
        return given == null || "".equals(given) ? otherwise : (String) given;
    }
}
