package org.shinglefold.search;

import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.search.FieldDoc;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.SortField;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopFieldDocs;
import org.opensearch.common.lucene.search.TopDocsAndMaxScore;
import org.opensearch.index.mapper.DocValueFetcher;
import org.opensearch.index.mapper.MappedFieldType;
import org.opensearch.index.shard.SearchOperationListener;
import org.opensearch.search.internal.SearchContext;
import org.opensearch.search.lookup.SourceLookup;
import org.opensearch.search.query.QuerySearchResult;
import org.shinglefold.fold.FoldOptions;
import org.shinglefold.fold.FoldedWindow;
import org.shinglefold.fold.LeaderFolding;
import org.shinglefold.fold.Matcher;
import org.shinglefold.fold.Row;
import org.shinglefold.fold.Scheme;
import org.shinglefold.page.Plan;
import org.shinglefold.page.ShardPage;

/**
 * Folds the window of a search between its query and its fetch, on a shard that has all its hits.
 *
 * <p>So the shard reads doc values where they are, and fetches the hits of the page alone. What goes wrong
 * here leaves the hits as they are: the coordinating node then reads and folds a window itself.
 */
final class ShardFolding implements SearchOperationListener {
    private static final Logger LOG = LogManager.getLogger(ShardFolding.class);
    private final IndexFacts facts;

    ShardFolding(IndexFacts facts) {
        this.facts = facts;
    }

    @Override
    public void onPreFetchPhase(SearchContext context) {
        if (context.numberOfShards() != 1 || !(context.getSearchExt(ShardFoldExt.NAME) instanceof ShardFoldExt ext)) {
            return;
        }
        try {
            fold(context, ext);
        } catch (IOException | RuntimeException error) {
            LOG.debug("the coordinating node folds this search", error);
        }
    }

    @Override
    public void onFetchPhase(SearchContext context, long tookInNanos) {
        if (context.getSearchExt(ShardFoldExt.NAME) instanceof ShardFoldExt ext && ext.result() != null) {
            ShardPage.write(context.fetchResult().hits().getHits(), ext.result().places(), ext.result().window());
        }
    }

    private void fold(SearchContext context, ShardFoldExt ext) throws IOException {
        Mapping mapping = facts.mapping(context.indexShard().indexSettings().getIndexMetadata());
        Scheme scheme = mapping.scheme();
        TopDocs found = context.queryResult().topDocs().topDocs;
        if (scheme == null || !scheme.id().equals(ext.scheme()) || found.scoreDocs.length == 0) {
            return;
        }
        FoldOptions options = OptionsParser.parse(ext.options());
        LeaderFolding folding = new LeaderFolding(scheme, options);
        Map<String, String> formats = new HashMap<>();
        Plan.fields(scheme, options).forEach(name -> formats.put(name, null));
        RequestCheck.isoDates(options, List.of(mapping)).forEach(name -> formats.put(name, Plan.ISO_DATE));
        List<Row> rows = rows(context, found.scoreDocs, formats, keywords(scheme, options));
        for (int begin = 0; begin < rows.size(); begin += options.window()) {
            folding.add(rows.subList(begin, Math.min(rows.size(), begin + options.window())));
        }
        int byScore = byScore(found);
        FoldedWindow window = FoldedWindow.of(
            folding, place -> score(found.scoreDocs[place], byScore), ext.from(), ext.needed(), options.members()
        );
        // One hit at least carries the rest of the answer.
        List<Integer> places = window.shown().isEmpty() ? List.of(0) : List.copyOf(new TreeSet<>(window.places()));
        keep(context.queryResult(), places);
        context.addSearchExt(ext.with(new ShardFoldExt.Result(window, places)));
    }

    /** Returns the field of supershingles, which has no doc values; empty if they are not needed. */
    private static String keywords(Scheme scheme, FoldOptions options) {
        return new Matcher(scheme, options).needsSupershingles() ? scheme.field() + ".supershingles" : "";
    }

    /** Returns the doc values of hits as a search with {@code docvalue_fields} does, and one field from sources. */
    private static List<Row> rows(
        SearchContext context, ScoreDoc[] docs, Map<String, String> formats, String stored
    ) throws IOException {
        Map<String, DocValueFetcher> fetchers = new HashMap<>();
        for (String name : formats.keySet()) {
            MappedFieldType type = context.mapperService().fieldType(name);
            if (type != null) {
                var data = context.getQueryShardContext().getForField(type);
                fetchers.put(name, new DocValueFetcher(type.docValueFormat(formats.get(name), null), data));
            }
        }
        List<LeafReaderContext> leaves = context.searcher().getIndexReader().leaves();
        SourceLookup place = new SourceLookup();
        Row[] rows = new Row[docs.length];
        LeafReaderContext leaf = null;
        // Doc values are read forwards only.
        for (int at : IntStream.range(0, docs.length).boxed().sorted(Comparator.comparingInt(at -> docs[at].doc)).toList()) {
            LeafReaderContext of = leaves.get(ReaderUtil.subIndex(docs[at].doc, leaves));
            if (of != leaf) {
                leaf = of;
                for (DocValueFetcher fetcher : fetchers.values()) {
                    fetcher.setNextReader(leaf);
                }
            }
            place.setSegmentAndDocument(leaf, docs[at].doc - leaf.docBase);
            Map<String, List<Object>> values = new HashMap<>();
            for (Map.Entry<String, DocValueFetcher> one : fetchers.entrySet()) {
                values.put(one.getKey(), one.getValue().fetchValues(place));
            }
            if (!stored.isEmpty()) {
                values.put(stored, place.extractRawValues(stored));
            }
            rows[at] = name -> values.getOrDefault(name, List.of());
        }
        return Arrays.asList(rows);
    }

    /** Returns which sort key is the score; −1 if none is. */
    private static int byScore(TopDocs found) {
        SortField[] keys = found instanceof TopFieldDocs sorted ? sorted.fields : new SortField[0];
        int last = keys.length - 1;
        while (last >= 0 && keys[last].getType() != SortField.Type.SCORE) {
            last--;
        }
        return last;
    }

    /** Returns the score that the answer shows of a hit. */
    private static double score(ScoreDoc hit, int byScore) {
        return hit instanceof FieldDoc sorted
            ? byScore < 0 ? Double.NaN : ((Number) sorted.fields[byScore]).floatValue() : hit.score;
    }

    /** Leaves the hits at some places in a result, as if only these had been found. */
    private static void keep(QuerySearchResult result, List<Integer> places) {
        TopDocsAndMaxScore all = result.topDocs();
        ScoreDoc[] kept = places.stream().map(place -> all.topDocs.scoreDocs[place]).toArray(ScoreDoc[]::new);
        TopDocs page = all.topDocs instanceof TopFieldDocs sorted
            ? new TopFieldDocs(sorted.totalHits, kept, sorted.fields) : new TopDocs(all.topDocs.totalHits, kept);
        result.topDocs(new TopDocsAndMaxScore(page, all.maxScore), result.sortValueFormats());
    }
}
