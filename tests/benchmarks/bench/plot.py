"""Draws latency and bandwidth by message size, with gnuplot."""
import subprocess
import tempfile

SCRIPT = """
set terminal svg size 1000,420 font "sans-serif,12" background "white"
set output "{output}"
set multiplot layout 1,2
set logscale x 2
set logscale y
set grid
set key top left samplen 2 spacing 1.1
set xlabel "message, bytes"
set xtics ("2" 2, "64" 64, "512" 512, "4 Ki" 4096, "64 Ki" 65536, "1 Mi" 1048576, "8 Mi" 8388608)
set title "one way, median, µs (lower is better)"
plot {latency}
set title "one direction, MB/s (higher is better)"
set key bottom right
plot {bandwidth}
"""


def draw(results, output):
    if "sizes" not in results:
        return
    with tempfile.TemporaryDirectory() as directory:
        curves = {}
        for kind, rows in results["sizes"].items():
            curves[kind] = []
            for number, (name, points) in enumerate(rows.items()):
                file = f"{directory}/{kind}{number}"
                with open(file, "w", encoding="utf-8") as data:
                    data.writelines(f"{size} {value}\n" for size, value in points.items())
                curves[kind].append(f'"{file}" with linespoints lw 2 pt 7 ps 0.5 title "{name}"')
        script = SCRIPT.format(output=output,
                               **{kind: ", ".join(lines) for kind, lines in curves.items()})
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
