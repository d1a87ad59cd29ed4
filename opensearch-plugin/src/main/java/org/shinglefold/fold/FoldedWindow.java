package org.shinglefold.fold;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntToDoubleFunction;

/**
 * What folding made of a window, as far as its page needs it.
 *
 * @param counts counts of the hits read
 * @param groups how many groups they have
 * @param late how many groups begin in the second half of the window
 * @param shown the groups of the page
 */
public record FoldedWindow(Counts counts, int groups, int late, List<Shown> shown) {
    /**
     * A group of the page.
     *
     * @param places of the hits shown: the representative first, then members
     * @param size how many hits the group has
     * @param best the best score of them; NaN if they have none
     */
    public record Shown(List<Integer> places, int size, float best) {}

    /**
     * Returns what a page needs of a folded window.
     *
     * @param scores the score of the hit at each place
     * @param from how many groups come before the page
     * @param needed how many groups fill the page, and those before it
     * @param members how many members to show of each group
     */
    public static FoldedWindow of(LeaderFolding folding, IntToDoubleFunction scores, int from, int needed, int members) {
        List<LeaderFolding.Group> groups = folding.groups();
        int half = folding.counts().hits() / 2;
        int late = (int) groups.stream().filter(group -> group.members().get(0) >= half).count();
        List<Shown> shown = groups.subList(Math.min(from, groups.size()), Math.min(needed, groups.size())).stream()
            .map(group -> shown(group, scores, members)).toList();
        return new FoldedWindow(folding.counts(), groups.size(), late, shown);
    }

    private static Shown shown(LeaderFolding.Group group, IntToDoubleFunction scores, int members) {
        List<Integer> places = new ArrayList<>(List.of(group.representative()));
        group.members().stream().filter(place -> place != group.representative()).limit(members).forEach(places::add);
        float best = Float.NaN;
        for (int place : group.members()) {
            float score = (float) scores.applyAsDouble(place);
            best = Float.isNaN(best) || score > best ? score : best;
        }
        return new Shown(places, group.members().size(), best);
    }

    /** Returns the places of the hits on the page. */
    public List<Integer> places() {
        return shown.stream().map(Shown::places).flatMap(List::stream).toList();
    }

    /** Returns the same in types that nodes send to each other. */
    public List<Object> toValues() {
        List<Object> groupsShown = new ArrayList<>();
        shown.forEach(one -> groupsShown.add(List.of(one.places, one.size, one.best)));
        return List.of(counts.toValues(), groups, late, groupsShown);
    }

    /** Returns the window that {@link #toValues} describes. */
    @SuppressWarnings("unchecked")
    public static FoldedWindow ofValues(List<Object> values) {
        List<Shown> shown = ((List<List<Object>>) values.get(3)).stream()
            .map(one -> new Shown((List<Integer>) one.get(0), (int) one.get(1), (float) one.get(2))).toList();
        return new FoldedWindow(
            Counts.ofValues((List<Object>) values.get(0)), (int) values.get(1), (int) values.get(2), shown
        );
    }
}
