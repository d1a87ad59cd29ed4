package org.shinglefold.search;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotSame;
import static org.junit.Assert.assertSame;

import java.util.ArrayList;
import java.util.List;
import org.junit.Test;
import org.opensearch.Version;
import org.opensearch.cluster.metadata.IndexMetadata;
import org.opensearch.common.settings.Settings;

/** Mappings are parsed once, however many indices a search has, as long as they fit. */
public class IndexFactsTest {
    private final IndexFacts facts = new IndexFacts();

    @Test
    public void mappingsOfManyIndicesAreParsedOnce() throws Exception {
        List<IndexMetadata> indices = new ArrayList<>();
        for (int number = 0; number < 1000; number++) {
            indices.add(index("pages-" + number, 1, "x"));
        }
        List<Mapping> first = indices.stream().map(facts::mapping).toList();
        for (int number = 0; number < indices.size(); number++) {
            assertSame(first.get(number), facts.mapping(indices.get(number)));
        }
    }

    @Test
    public void changedMappingsAreParsedAgain() throws Exception {
        Mapping before = facts.mapping(index("pages", 1, "x"));
        Mapping after = facts.mapping(index("pages", 2, "y"));
        assertNotSame(before, after);
        assertEquals("y", after.source().get("dynamic"));
    }

    @Test
    public void ofLargeMappingsOnlySomeAreKept() throws Exception {
        IndexMetadata first = index("pages", 1, "x".repeat(1 << 20));
        Mapping parsed = facts.mapping(first);
        for (int number = 0; number < 40; number++) {
            facts.mapping(index("others-" + number, 1, "x".repeat(1 << 20)));
        }
        assertNotSame(parsed, facts.mapping(first));
    }

    private static IndexMetadata index(String name, long version, String dynamic) throws Exception {
        Settings settings = Settings.builder().put(IndexMetadata.SETTING_VERSION_CREATED, Version.CURRENT)
            .put(IndexMetadata.SETTING_INDEX_UUID, name).put(IndexMetadata.SETTING_NUMBER_OF_SHARDS, 1)
            .put(IndexMetadata.SETTING_NUMBER_OF_REPLICAS, 0).build();
        return IndexMetadata.builder(name).settings(settings).mappingVersion(version)
            .putMapping("{\"_doc\":{\"dynamic\":\"" + dynamic + "\"}}").build();
    }
}
