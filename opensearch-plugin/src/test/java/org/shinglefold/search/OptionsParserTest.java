package org.shinglefold.search;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.Test;

/** Options of null are taken and refused as by the Python client. */
public class OptionsParserTest {
    @Test
    public void optionsOfNullAreTheDefaultOrRefused() {
        for (String name : List.of("min_resemblance", "min_length_ratio", "min_shared")) {
            assertEquals(name, OptionsParser.parse(Map.of()), OptionsParser.parse(Collections.singletonMap(name, null)));
        }
        for (String name : List.of("representative", "scope", "members", "window", "max_window", "fold", "unknown")) {
            assertThrows(
                name, IllegalArgumentException.class, () -> OptionsParser.parse(Collections.singletonMap(name, null))
            );
        }
    }

    @Test
    public void membersOfNoSizeAreRefused() {
        Map<String, Object> members = Map.of("members", Collections.singletonMap("size", null));
        assertThrows(IllegalArgumentException.class, () -> OptionsParser.parse(members));
        assertEquals(5, OptionsParser.parse(Map.of("members", Map.of())).members());
    }
}
