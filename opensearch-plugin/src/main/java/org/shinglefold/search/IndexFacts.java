package org.shinglefold.search;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.cluster.ClusterState;
import org.opensearch.cluster.metadata.IndexMetadata;
import org.opensearch.cluster.metadata.IndexNameExpressionResolver;
import org.opensearch.cluster.metadata.MappingMetadata;
import org.opensearch.cluster.service.ClusterService;
import org.opensearch.common.cache.Cache;
import org.opensearch.common.cache.CacheBuilder;
import org.opensearch.common.util.concurrent.ThreadContext;
import org.opensearch.core.tasks.TaskId;
import org.opensearch.index.IndexNotFoundException;
import org.opensearch.index.IndexSettings;
import org.opensearch.tasks.TaskResourceTrackingService;
import org.shinglefold.fold.Scheme;

/** What the cluster state says of the indices of a search. */
final class IndexFacts {
    /** The hits of a search can't be folded, for this reason. */
    static final class Unfoldable extends Exception {
        private static final long serialVersionUID = 1L;

        Unfoldable(String reason) {
            super(reason, null, false, false);
        }
    }

    /**
     * What a search needs to know.
     *
     * @param scheme the scheme to fold by: that of most indices, of equally many that of the first name
     * @param mappings the mapping of each index
     * @param shards how many shards are searched
     * @param most the most hits that all indices return
     */
    record Known(Scheme scheme, List<Mapping> mappings, int shards, int most) {}

    /** The bytes of mappings, as JSON, that are kept parsed; a parsed one takes some five times as many. */
    private static final long MOST_KEPT = 16L << 20;
    private static final int OF_EACH = 1024;
    private final Cache<Key, Mapping> kept = CacheBuilder.<Key, Mapping>builder()
        .setMaximumWeight(MOST_KEPT).weigher((key, mapping) -> OF_EACH + mapping.size()).build();
    private ClusterService clusterService;
    private IndexNameExpressionResolver resolver;
    private ThreadContext threads;

    private record Key(String uuid, long version) {}

    void begin(ClusterService service, IndexNameExpressionResolver names, ThreadContext context) {
        clusterService = service;
        resolver = names;
        threads = context;
    }

    /** Returns the task of this thread's request; an empty one if tasks are not tracked. */
    TaskId currentTask() {
        Object id = threads.getTransient(TaskResourceTrackingService.TASK_ID);
        return id instanceof Long number
            ? new TaskId(clusterService.localNode().getId(), number) : TaskId.EMPTY_TASK_ID;
    }

    /**
     * Returns what is known of the indices of a search.
     *
     * @throws Unfoldable no hit of theirs could fold
     */
    Known of(SearchRequest request) throws Unfoldable {
        ClusterState state = clusterService.state();
        String[] names = names(state, request);
        List<Mapping> mappings = new ArrayList<>();
        int most = Integer.MAX_VALUE;
        for (String name : names) {
            IndexMetadata index = state.metadata().index(name);
            mappings.add(mapping(index));
            most = Math.min(most, IndexSettings.MAX_RESULT_WINDOW_SETTING.get(index.getSettings()));
        }
        Scheme scheme = target(mappings, names);
        for (Mapping mapping : mappings) {
            String refused = mapping.unreadable(scheme.field());
            if (refused != null) {
                throw new Unfoldable(refused);
            }
        }
        if (mappings.stream().noneMatch(one -> one.hasFingerprints(scheme))) {
            throw new Unfoldable(
                "no index of " + String.join(",", names) + " has fingerprints in '" + scheme.field()
                    + "' that the plugin can read"
            );
        }
        return new Known(scheme, mappings, shards(state, request, names), most);
    }

    private String[] names(ClusterState state, SearchRequest request) throws Unfoldable {
        for (String name : request.indices()) {
            if (name.contains(":") && !name.startsWith("<")) {
                throw OptionsParser.forPython("indices of other clusters (" + name + ")");
            }
        }
        try {
            String[] names = resolver.concreteIndexNames(state, request);
            // Of two schemes with as many indices, the one of the first name folds.
            Arrays.sort(names);
            return names;
        } catch (IndexNotFoundException missing) {
            // The search itself says so.
            throw new Unfoldable(missing.getMessage());
        }
    }

    private int shards(ClusterState state, SearchRequest request, String[] names) {
        var routing = resolver.resolveSearchRouting(state, request.routing(), request.indices());
        return clusterService.operationRouting().searchShards(state, names, routing, request.preference()).size();
    }

    private Scheme target(List<Mapping> mappings, String[] names) throws Unfoldable {
        // Schemes with other thresholds have the same id.
        Map<List<String>, Integer> counted = new HashMap<>();
        String problem = names.length == 0
            ? "no index has such a name" : "the recipe of " + String.join(",", names) + " can't be read";
        for (Mapping mapping : mappings) {
            if (mapping.scheme() != null) {
                counted.merge(key(mapping.scheme()), 1, Integer::sum);
            } else if (!mapping.problem().isEmpty()) {
                problem = mapping.problem();
            }
        }
        Scheme chosen = null;
        for (Mapping mapping : mappings) {
            Scheme one = mapping.scheme();
            if (one != null && (chosen == null || counted.get(key(one)) > counted.get(key(chosen)))) {
                chosen = one;
            }
        }
        if (chosen == null) {
            throw new Unfoldable(problem);
        }
        return chosen;
    }

    private static List<String> key(Scheme scheme) {
        return List.of(scheme.id(), scheme.field());
    }

    Mapping mapping(IndexMetadata index) {
        Key key = new Key(index.getIndexUUID(), index.getMappingVersion());
        Mapping known = kept.get(key);
        if (known == null) {
            // Two searches may parse the same one: neither waits for the other.
            MappingMetadata found = index.mapping();
            known = Mapping.of(index.getIndex().getName(), found == null ? null : found.source());
            kept.put(key, known);
        }
        return known;
    }
}
