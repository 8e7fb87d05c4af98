// FABRIK on one chain of points, as a C++ programmer would write it: the mark for our kernel.
#include <cmath>

struct Point { double x, y, z; };

static inline Point placed(Point p, Point towards, double length) {
    const double x = towards.x - p.x, y = towards.y - p.y, z = towards.z - p.z;
    const double k = length / std::sqrt(x * x + y * y + z * z);
    return {p.x + k * x, p.y + k * y, p.z + k * z};
}

// Moves n + 1 points with n lengths between them; returns the iterations that were taken.
extern "C" int fabrik(double *points, const double *lengths, int n, const double *target, double tolerance, int most) {
    Point *p = reinterpret_cast<Point *>(points);
    const Point t = {target[0], target[1], target[2]}, root = p[0];
    for (int k = 0;; ++k) {
        const double x = t.x - p[n].x, y = t.y - p[n].y, z = t.z - p[n].z;
        if (x * x + y * y + z * z <= tolerance * tolerance || k == most) return k;
        p[n] = t;
        for (int i = n - 1; i >= 0; --i) p[i] = placed(p[i + 1], p[i], lengths[i]);
        p[0] = root;
        for (int i = 0; i < n; ++i) p[i + 1] = placed(p[i], p[i + 1], lengths[i]);
    }
}
