//! Misspelt names.

/// Returns the known name that a misspelt one is likely to mean; two letters swapped are one slip.
pub fn nearest_name<'a>(
    misspelt: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let slips_max = if misspelt.len() < 4 { 1 } else { 2 };
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(misspelt, name), name))
        .filter(|(slips, name)| *slips <= slips_max && slips * 2 < name.len())
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest_name;

    #[test]
    fn few_slips_for_the_length_are_near() {
        let known = ["threads", "thread_files", "createfile", "kp", "luc"];
        let nearest = |misspelt| nearest_name(misspelt, known);
        assert_eq!(nearest("thread"), Some("threads"));
        assert_eq!(nearest("lcu"), Some("luc"));
        assert_eq!(nearest("theradfiles"), Some("thread_files"));
        assert_eq!(nearest("reads"), Some("threads"));
        // Half of the letters would have to change, or too many of them.
        assert_eq!(nearest("kd"), None);
        assert_eq!(nearest("readfile"), None);
    }
}
