package org.shinglefold.fold;

import java.util.List;

/** The doc values of a hit. */
@FunctionalInterface
public interface Row {
    /** Returns the values of a field; an empty list if the hit has none. */
    List<Object> values(String field);
}
