package org.shinglefold.search;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.Test;
import org.opensearch.common.compress.CompressedXContent;
import org.shinglefold.fold.FoldOptions;

/** Which dates are read as ISO 8601, and which fields can't be compared. */
public class MappingTest {
    private static final List<String> POLICIES = List.of(
        "newest:day", "newest:nanos", "oldest:plain", "oldest:millis", "newest:alias", "newest:none", "prefer:other=a"
    );

    @Test
    public void datesOfOtherFormatsAreReadAsIso() throws Exception {
        FoldOptions options = OptionsParser.parse(Map.of("representative", POLICIES, "scope", List.of("near:1d", "same")));
        assertEquals(Set.of("day", "nanos", "alias", "near"), RequestCheck.isoDates(options, List.of(mapping())));
    }

    @Test
    public void aDateThatIsNoDateInAnotherIndexIsRefused() throws Exception {
        Mapping keyword = mapping("{\"day\":{\"type\":\"keyword\"},\"plain\":{\"type\":\"keyword\"}}");
        FoldOptions plain = OptionsParser.parse(Map.of("representative", "newest:plain"));
        assertEquals(Set.of(), RequestCheck.isoDates(plain, List.of(mapping(), keyword)));
        FoldOptions day = OptionsParser.parse(Map.of("representative", "newest:day"));
        assertEquals(Set.of("day"), RequestCheck.isoDates(day, List.of(mapping(), mapping("{}"))));
        assertThrows(
            IllegalArgumentException.class, () -> RequestCheck.isoDates(day, List.of(mapping(), keyword))
        );
    }

    @Test
    public void aDateWithAFormatIsReadByItsTimeOrAsItIsWritten() throws Exception {
        for (Object scope : List.of("plain", "other")) {
            FoldOptions fine = OptionsParser.parse(Map.of("representative", List.of("newest:day", "prefer:plain=1"), "scope", scope));
            assertEquals(Set.of("day"), RequestCheck.isoDates(fine, List.of(mapping())));
        }
        for (Map<String, Object> both : List.<Map<String, Object>>of(
            Map.of("representative", List.of("prefer:day=2026/01/05", "newest:day")),
            Map.of("representative", "oldest:day", "scope", "day"),
            Map.of("scope", List.of("near", "near:1d"))
        )) {
            FoldOptions options = OptionsParser.parse(both);
            assertThrows(IllegalArgumentException.class, () -> RequestCheck.isoDates(options, List.of(mapping())));
        }
    }

    @Test
    public void fieldsOfTypesWithoutDatesAreRefusedAsDates() throws Exception {
        for (String name : List.of("day", "nanos", "alias", "number", "text.raw", "none", "_seq_no")) {
            FoldOptions fine = OptionsParser.parse(Map.of("representative", "newest:" + name, "scope", "range"));
            RequestCheck.checkFields(fine, "pages", List.of(mapping("{\"none\":{\"type\":\"keyword\"}}"), mapping()));
        }
        for (String name : List.of("range", "text", "object")) {
            FoldOptions oldest = OptionsParser.parse(Map.of("representative", "oldest:" + name));
            FoldOptions near = OptionsParser.parse(Map.of("scope", name + ":1d"));
            List<Mapping> several = List.of(mapping("{}"), mapping());
            assertThrows(IllegalArgumentException.class, () -> RequestCheck.checkFields(oldest, "pages", several));
            assertThrows(IllegalArgumentException.class, () -> RequestCheck.checkFields(near, "pages", several));
        }
    }

    @Test
    public void fieldsWhoseValuesHitsDoNotReturnAreRefused() throws Exception {
        Map<String, String> reasons = Map.of(
            "text", "mapped as text", "alias", "", "text.raw", "", "object", "an object", "day*", "a pattern", "_score",
            "no stored field", "_seq_no", "", "off.a", "not mapped", "later.a", "", "parts.a", "a field of nested documents"
        );
        Mapping mapping = mapping(
            "{\"text\":{\"type\":\"text\",\"fields\":{\"raw\":{\"type\":\"keyword\"}}},\"later\":{\"type\":\"object\"},"
                + "\"alias\":{\"type\":\"alias\",\"path\":\"text.raw\"},\"object\":{\"properties\":{}},"
                + "\"off\":{\"type\":\"object\",\"enabled\":false},\"parts\":{\"type\":\"nested\",\"properties\":{\"a\":{}}}}"
        );
        for (Map.Entry<String, String> one : reasons.entrySet()) {
            FoldOptions options = OptionsParser.parse(Map.of("scope", one.getKey()));
            if (one.getValue().isEmpty()) {
                RequestCheck.checkFields(options, "pages", List.of(mapping));
                continue;
            }
            String told = assertThrows(
                IllegalArgumentException.class, () -> RequestCheck.checkFields(options, "pages", List.of(mapping))
            ).getMessage();
            String better = one.getKey().equals("text") ? "'text.raw'" : "a keyword, a number or a date";
            assertEquals(
                "index 'pages': '" + one.getKey() + "' is " + one.getValue() + ", so hits do not return its values; name "
                    + better + " for the scope or policy",
                told
            );
        }
    }

    private static Mapping mapping() throws Exception {
        return mapping(
            "{\"day\":{\"type\":\"date\",\"format\":\"yyyy/MM/dd\"},\"nanos\":{\"type\":\"date_nanos\",\"format\":\"epoch_millis\"},"
                + "\"plain\":{\"type\":\"date\"},\"millis\":{\"type\":\"date\",\"format\":\"epoch_millis\"},"
                + "\"range\":{\"type\":\"date_range\",\"format\":\"yyyy\"},\"alias\":{\"type\":\"alias\",\"path\":\"day\"},"
                + "\"near\":{\"type\":\"date\",\"format\":\"strict_date\"},\"same\":{\"type\":\"date\",\"format\":\"yyyy\"},"
                + "\"other\":{\"type\":\"date\",\"format\":\"yyyy\"},\"number\":{\"type\":\"long\"},"
                + "\"object\":{\"properties\":{\"day\":{\"type\":\"date\"}}},"
                + "\"text\":{\"type\":\"text\",\"fields\":{\"raw\":{\"type\":\"keyword\"}}}}"
        );
    }

    private static Mapping mapping(String properties) throws Exception {
        return Mapping.of("pages", new CompressedXContent("{\"_doc\":{\"properties\":" + properties + "}}"));
    }
}
