package org.shinglefold;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.BeforeClass;
import org.junit.Test;
import org.opensearch.common.xcontent.XContentHelper;
import org.opensearch.common.xcontent.json.JsonXContent;
import org.shinglefold.fold.Fingerprint;
import org.shinglefold.fold.FoldOptions;
import org.shinglefold.fold.LeaderFolding;
import org.shinglefold.fold.Matcher;
import org.shinglefold.fold.Row;
import org.shinglefold.fold.Scheme;
import org.shinglefold.search.OptionsParser;

/** The plugin decides as Python did when it wrote {@code golden.json}. */
public class GoldenTest {
    private static Map<String, Object> golden;

    @BeforeClass
    public static void read() throws IOException {
        try (InputStream file = GoldenTest.class.getResourceAsStream("/golden.json")) {
            golden = XContentHelper.convertToMap(JsonXContent.jsonXContent, file, false);
        }
    }

    @Test
    public void estimatesAreEqualToTheLastBit() {
        for (Map<String, Object> one : objects(golden, "schemes")) {
            Scheme scheme = Scheme.of(object(one, "recipe"));
            int every = (int) one.get("every"), agreeing = 0;
            for (Object estimate : list(one, "estimates")) {
                assertEquals(scheme.id(), ((Number) estimate).doubleValue(), scheme.estimate(agreeing), 0.0);
                agreeing += every;
            }
            object(one, "needs").forEach((least, need) ->
                assertEquals(scheme.id(), need, scheme.agreementFor(Double.parseDouble(least))));
        }
    }

    @Test
    public void signaturesAgreeInAsManyValues() {
        FoldOptions options = OptionsParser.parse(Map.of("min_resemblance", 0.5));
        for (Map<String, Object> one : objects(golden, "schemes")) {
            Scheme scheme = Scheme.of(object(one, "recipe"));
            Matcher matcher = new Matcher(scheme, options);
            for (Map<String, Object> pair : objects(one, "pairs")) {
                long[] a = signature(pair.get("one"), scheme), b = signature(pair.get("other"), scheme);
                assertEquals(scheme.id(), pair.get("agreeing"), matcher.agreeing(a, b, scheme.values()));
            }
        }
    }

    @Test
    public void pagesHaveTheSameGroups() {
        Scheme scheme = Scheme.of(object(golden, "recipe"));
        List<Map<String, Object>> hits = objects(golden, "hits");
        for (Map<String, Object> page : objects(golden, "pages")) {
            LeaderFolding folding = new LeaderFolding(scheme, OptionsParser.parse(object(page, "options")));
            folding.add(list(page, "order").stream().map(place -> row(hits.get((int) place))).toList());
            List<List<Integer>> groups = new ArrayList<>();
            for (LeaderFolding.Group group : folding.groups()) {
                List<Integer> places = new ArrayList<>(List.of(group.representative()));
                places.addAll(group.members());
                groups.add(places);
            }
            String options = String.valueOf(page.get("options"));
            assertEquals(options, unpacked(list(page, "groups")), groups);
            assertEquals(options, page.get("unsigned"), folding.counts().unsigned());
            assertEquals(options, page.get("unreadable"), folding.counts().unreadable());
            assertEquals(options, object(page, "other_schemes"), folding.counts().otherSchemes());
            assertEquals(options, new TreeMap<>(object(page, "languages")), folding.counts().languages());
            assertTrue(options, groups.size() < hits.size());
        }
    }

    /** Returns groups of a representative and a list of members as flat lists. */
    private static List<List<Object>> unpacked(List<Object> groups) {
        List<List<Object>> found = new ArrayList<>();
        for (Object group : groups) {
            List<Object> places = new ArrayList<>();
            for (Object part : (List<?>) group) {
                if (part instanceof List<?> members) {
                    places.addAll(members);
                } else {
                    places.add(part);
                }
            }
            found.add(places);
        }
        return found;
    }

    private static Row row(Map<String, Object> fields) {
        return name -> fields.containsKey(name) ? list(fields, name) : List.of();
    }

    private static long[] signature(Object base64, Scheme scheme) {
        String digest = scheme.id() + ".ru.300.x";
        Map<String, Object> fields = Map.of("_dedup.digest", List.of(digest), "_dedup.signature", List.of(base64));
        assertEquals(scheme.signatureSize(), Base64.getDecoder().decode((String) base64).length);
        return Fingerprint.of(row(fields), scheme, true).signature();
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Map<String, Object> of, String name) {
        return (Map<String, Object>) of.get(name);
    }

    @SuppressWarnings("unchecked")
    private static List<Object> list(Map<String, Object> of, String name) {
        return (List<Object>) of.get(name);
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> objects(Map<String, Object> of, String name) {
        return (List<Map<String, Object>>) of.get(name);
    }
}
