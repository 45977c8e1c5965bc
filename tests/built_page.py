"""A built page in small, as the tests of one page, the PDF and the EPUB read it."""

DOCNAMES = {"book/intro", "book/numbers/index", "book/numbers/bits"}
PAGE = """<html><head><link rel="stylesheet" type="text/css" href="../../_static/book.css?v=1" />
<link href="../../_static/theme.css?v=2" rel="stylesheet" /><link rel="icon" href="../../_static/logo.svg"/>
<style>
.mp-style-1{color:red!important}
</style></head><body><h1>Bits</h1><article class="bd-article"><section id="bits">
<h1>Bits &amp; more<a class="headerlink" href="#bits">#</a></h1>
<p><a href="#by-hand">here</a> <a href="../intro.html">start</a> <a href="index.html#goals">part</a>
<a href="../../_static/formats.csv">file</a> <a href="https://a.example/x">far</a></p>
<h2 id="by-hand" class="mp-style-1">By hand</h2><label for="one">x</label><script>gone()</script>
<pre><span class="n">a</span><span class="p">(</span><span class="s2">"b"</span></pre>
<details><summary>Answer</summary>yes</details>
<div class="mp-widget" data-mp-widget="quiz" data-mp-state="{}">static<p class="mp-static-note">gone</p></div>
<img class="mp-plot-light" loading="lazy" src="../../_images/a.webp"/>
<img class="mp-plot-dark" src="../../_images/b.webp"/>
</section></article></body></html>"""
