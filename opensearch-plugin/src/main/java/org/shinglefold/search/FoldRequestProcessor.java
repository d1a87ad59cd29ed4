package org.shinglefold.search;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.opensearch.action.search.SearchRequest;
import org.opensearch.core.tasks.TaskId;
import org.opensearch.search.SearchExtBuilder;
import org.opensearch.search.builder.SearchSourceBuilder;
import org.opensearch.search.pipeline.AbstractProcessor;
import org.opensearch.search.pipeline.PipelineProcessingContext;
import org.opensearch.search.pipeline.StatefulSearchRequestProcessor;
import org.opensearch.search.pipeline.SystemGeneratedProcessor;
import org.shinglefold.fold.FoldOptions;
import org.shinglefold.fold.Matcher;
import org.shinglefold.page.Bodies;
import org.shinglefold.page.Plan;

/** Turns a search into one for the window that is folded. */
final class FoldRequestProcessor extends AbstractProcessor
    implements StatefulSearchRequestProcessor, SystemGeneratedProcessor {
    /** The attribute that tells the response processor what to do. */
    static final String PLAN = "shinglefold.plan";
    /** The attribute with the options of the search, for which its counters are kept. */
    static final String EXT = "shinglefold.ext";
    private final boolean always;
    private final Map<String, Object> defaults;
    private final IndexFacts facts;

    private FoldRequestProcessor(
        String tag, String description, boolean ignoreFailure, boolean always, Map<String, Object> defaults,
        IndexFacts facts
    ) {
        super(tag, description, ignoreFailure);
        this.always = always;
        this.defaults = defaults;
        this.facts = facts;
    }

    /** Returns the processor of a named pipeline, which folds every search; its options are the defaults. */
    static FoldRequestProcessor named(
        String tag, String description, boolean ignoreFailure, Map<String, Object> config, IndexFacts facts
    ) {
        Map<String, Object> defaults = new HashMap<>(config);
        // What is left in it counts as unknown to the pipeline.
        config.clear();
        OptionsParser.parse(defaults);
        return new FoldRequestProcessor(tag, description, ignoreFailure, true, defaults, facts);
    }

    /** Returns the processor of a search that has {@code ext.dedup}. */
    static FoldRequestProcessor generated(String tag, String description, boolean ignoreFailure, IndexFacts facts) {
        return new FoldRequestProcessor(tag, description, ignoreFailure, false, Map.of(), facts);
    }

    @Override
    public String getType() {
        return DedupExt.NAME;
    }

    @Override
    public SearchRequest processRequest(SearchRequest request, PipelineProcessingContext context) {
        SearchSourceBuilder source = request.source();
        DedupExt ext = source == null ? null : takeExt(source);
        Map<String, Object> given = ext == null ? null : ext.options();
        if (given == null && !always || context.getAttribute(PLAN) != null) {
            return request;
        }
        Map<String, Object> merged = new HashMap<>(defaults);
        merged.putAll(given == null ? Map.of() : given);
        FoldOptions options = OptionsParser.parse(merged);
        if (source == null) {
            request.source(new SearchSourceBuilder());
        }
        if (!options.fold() || request.source().size() == 0) {
            return request;
        }
        RequestCheck.check(request);
        // The next processors want the request that they were given; the plan keeps it as it was.
        Plan plan = plan(new SearchRequest(request), options);
        context.setAttribute(PLAN, plan);
        if (ext != null) {
            ext.answerBy(plan);
            context.setAttribute(EXT, ext);
        }
        if (!plan.folds()) {
            return request;
        }
        request.source(Bodies.first(plan).source());
        if (plan.onShard()) {
            List<SearchExtBuilder> sections = new ArrayList<>(request.source().ext());
            sections.add(new ShardFoldExt(merged, plan));
            request.source().ext(sections);
        }
        return request;
    }

    private Plan plan(SearchRequest request, FoldOptions options) {
        String scheme = "";
        TaskId task = facts.currentTask();
        try {
            IndexFacts.Known known = facts.of(request);
            scheme = known.scheme().id();
            RequestCheck.checkSort(request.source(), known.mappings());
            RequestCheck.checkFields(options, String.join(",", request.indices()), known.mappings());
            boolean keywords = new Matcher(known.scheme(), options).needsSupershingles();
            if (keywords) {
                RequestCheck.checkSupershingles(request.source());
            }
            List<String> fields = Plan.fields(known.scheme(), options);
            Set<String> dates = RequestCheck.isoDates(options, known.mappings());
            boolean whole = RequestCheck.needsWholeHits(request.source());
            if (whole) {
                RequestCheck.checkForms(request.source(), fields, dates);
            }
            // Of sorted hits the scores come with the fetch.
            boolean onShard = known.shards() == 1 && !request.source().trackScores()
                && !(whole && RequestCheck.showsFields(request.source(), fields));
            return new Plan(
                request, options, known.scheme(), dates, "", known.shards(), known.most(), whole, onShard, task
            );
        } catch (IndexFacts.Unfoldable trouble) {
            return Plan.unfolded(request, options, scheme, trouble.getMessage(), task);
        }
    }

    /** Takes our options out of a request, which other nodes need not know; null if it has none. */
    private static DedupExt takeExt(SearchSourceBuilder source) {
        DedupExt found = null;
        List<SearchExtBuilder> others = new ArrayList<>();
        for (SearchExtBuilder ext : source.ext()) {
            if (ext instanceof DedupExt own) {
                found = own;
            } else {
                others.add(ext);
            }
        }
        if (found != null) {
            source.ext(others);
        }
        return found;
    }
}
